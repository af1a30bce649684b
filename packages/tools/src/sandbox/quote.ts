/** A text as one word of bash. */
export const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
