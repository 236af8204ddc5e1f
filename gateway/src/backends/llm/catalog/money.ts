/**
 * Amounts of money are whole numbers of picodollars (10^-12 US dollars): a price has at most six decimals and is for a
 * million tokens, so a token costs a whole number of them, and no sum is ever rounded.
 */
export type Picodollars = bigint

const decimals = 6
const perDollar = 1e12

/** Digits and at most six decimals. Twelve digits are more than anybody pays. */
const price = /^(\d{1,12})(?:\.(\d{1,6}))?$/

/** What one token costs by the price of a million, such as `2.50`; undefined for a text that is no price. */
export function parsePrice(text: string): Picodollars | undefined {
  const [, whole, fraction = ''] = price.exec(text) ?? []
  return whole === undefined ? undefined : BigInt(whole + fraction.padEnd(decimals, '0'))
}

/** The nearest number of US dollars. */
export function dollarsOf(amount: Picodollars): number {
  return Number(amount) / perDollar
}
