const months = 'January February March April May June July August September October November December'.split(' ')
const days = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')
const pad = (value: number, width = 2): string => String(value).padStart(width, '0')

const directives: Readonly<Record<string, (date: Date) => string>> = {
  Y: (date) => String(date.getFullYear()),
  y: (date) => pad(date.getFullYear() % 100),
  m: (date) => pad(date.getMonth() + 1),
  d: (date) => pad(date.getDate()),
  H: (date) => pad(date.getHours()),
  I: (date) => pad(date.getHours() % 12 || 12),
  M: (date) => pad(date.getMinutes()),
  S: (date) => pad(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? 'AM' : 'PM'),
  A: (date) => days[date.getDay()] ?? '',
  a: (date) => (days[date.getDay()] ?? '').slice(0, 3),
  B: (date) => months[date.getMonth()] ?? '',
  b: (date) => (months[date.getMonth()] ?? '').slice(0, 3),
  j: (date) => pad(dayOfYear(date), 3),
  e: (date) => String(date.getDate()).padStart(2, ' '),
  h: (date) => (months[date.getMonth()] ?? '').slice(0, 3),
  F: (date) => formatTime(date, '%Y-%m-%d'),
  T: (date) => formatTime(date, '%H:%M:%S'),
  R: (date) => formatTime(date, '%H:%M'),
  D: (date) => formatTime(date, '%m/%d/%y'),
  f: (date) => pad(date.getMilliseconds() * 1000, 6),
  '%': () => '%',
}

function dayOfYear(date: Date): number {
  const day = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate())
  return (day - Date.UTC(date.getFullYear(), 0, 0)) / 86_400_000
}

/** `date.strftime(format)` of Python in local time, with English names. Throws for a directive that is not in its table. */
export function formatTime(date: Date, format: string): string {
  return format.replace(/%(-?)(.)/gs, (_, unpadded: string, directive: string) => {
    const write = Object.hasOwn(directives, directive) ? directives[directive] : undefined
    if (!write) throw new Error(`strftime_now does not know %${directive}`)
    return unpadded ? write(date).replace(/^[0 ]+(?=.)/, '') : write(date)
  })
}
