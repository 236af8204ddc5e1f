const decimals = 12
export const picodollarsPerDollar = 1e12

/** US dollars of picodollars (10^-12 US dollars), rounded to the nearest number. */
export function dollarsOf(picodollars: bigint | number): number {
  return Number(picodollars) / picodollarsPerDollar
}

/** US dollars as an exact decimal number without trailing zeros, for example `0.00903`. */
export function decimalDollars(picodollars: bigint): string {
  const sign = picodollars < 0n ? '-' : ''
  const digits = String(picodollars < 0n ? -picodollars : picodollars).padStart(decimals + 1, '0')
  const fraction = digits.slice(-decimals).replace(/0+$/, '')
  return sign + digits.slice(0, -decimals) + (fraction === '' ? '' : `.${fraction}`)
}
