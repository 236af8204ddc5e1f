/** US dollars. Small amounts keep two significant digits: `$0.0042`. */
export function formatMoney(amount: number): string {
  const size = Math.abs(amount)
  const digits = size === 0 || size >= 0.1 ? 2 : Math.min(8, 1 - Math.floor(Math.log10(size)))
  return new Intl.NumberFormat(undefined, {
    style: 'currency',
    currency: 'USD',
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: size >= 1_000 ? 0 : Math.min(digits, 2),
    maximumFractionDigits: size >= 1_000 ? 0 : digits,
  }).format(amount)
}
