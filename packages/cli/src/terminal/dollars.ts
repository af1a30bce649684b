/** US dollars with cents, and with four decimals below one dollar. */
export const dollars = (value: number): string => `$${value.toFixed(value < 1 ? 4 : 2)}`
