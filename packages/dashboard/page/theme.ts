import { signal } from '@preact/signals'

export const theme = signal<'light' | 'dark'>(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')
try {
  const kept = localStorage.getItem('theme')
  if (kept === 'light' || kept === 'dark') theme.value = kept
} catch {
  // A page that opens from disk may have no storage.
}
theme.subscribe((value) => {
  document.documentElement.dataset['theme'] = value
})
export function turnTheme(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark'
  try {
    localStorage.setItem('theme', theme.value)
  } catch {
    // The choice holds until the page is left.
  }
}
/** A colour or length of the style sheet by its name, in the current theme. */
export const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
