/**
 * Money in picodollars (10^-12 US dollars). A price per million tokens has at most six decimals, so the price
 * of one token is an integer and sums are exact.
 */
export type Picodollars = bigint

const decimals = 6

/** At most twelve digits, beyond any real price, and six decimals. */
const price = /^(\d{1,12})(?:\.(\d{1,6}))?$/

/**
 * The price of one token, from the price per million such as `2.50`; undefined if the text is not a price.
 */
export function parsePrice(text: string): Picodollars | undefined {
  const [, whole, fraction = ''] = price.exec(text) ?? []
  return whole === undefined ? undefined : BigInt(whole + fraction.padEnd(decimals, '0'))
}
