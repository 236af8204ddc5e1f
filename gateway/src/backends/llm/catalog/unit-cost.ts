import type { UsageUnits } from '../../../pipeline/facts/llm-facts.ts'
import type { Picodollars } from './money.ts'

/**
 * Prices by other units than tokens, as `parsePrice` returns them: picodollars per millionth of an image, of
 * a minute, of a million characters and of a thousand searches.
 */
export type UnitPrices = {
  readonly perImage: Picodollars | undefined
  readonly images: readonly {
    readonly size?: string | undefined
    readonly quality?: string | undefined
    readonly price: Picodollars
  }[]
  readonly perMinute: Picodollars | undefined
  readonly perMillionCharacters: Picodollars | undefined
  readonly perThousandSearches: Picodollars | undefined
}

/** Cost of units. `isExact` is false if their number, size or quality is not certain. */
export type UnitCost = { readonly amount: Picodollars; readonly isExact: boolean }

const million = 1_000_000n

/** Cost of the units that replace the tokens of a call; undefined without such units or without a price. */
export function unitCostOf(units: UsageUnits, prices: UnitPrices): UnitCost | undefined {
  const { images, seconds, characters, searches } = units
  if (images !== undefined) return imageCost(images, prices)
  if (seconds !== undefined && prices.perMinute !== undefined)
    // Milliseconds, because providers report fractions.
    return exact((BigInt(Math.round(seconds * 1000)) * prices.perMinute * million) / 60_000n)
  if (characters !== undefined && prices.perMillionCharacters !== undefined)
    return exact(BigInt(characters) * prices.perMillionCharacters)
  const amount = searches === undefined ? undefined : searchCostOf(searches, prices)
  return amount === undefined ? undefined : exact(amount)
}

/** Cost of searches; undefined without a price. */
export function searchCostOf(searches: number, prices: UnitPrices | undefined): Picodollars | undefined {
  if (searches === 0) return 0n
  const price = prices?.perThousandSearches
  return price === undefined ? undefined : BigInt(searches) * price * 1000n
}

function exact(amount: Picodollars): UnitCost {
  return { amount, isExact: true }
}

function imageCost(
  { count, size, quality, isAssumed = false }: NonNullable<UsageUnits['images']>,
  { perImage, images }: UnitPrices,
): UnitCost | undefined {
  const found = images.find(
    (entry) =>
      (entry.size === undefined || entry.size === size) &&
      (entry.quality === undefined || entry.quality === quality),
  )
  const price = found?.price ?? perImage ?? images[0]?.price
  if (price === undefined) return undefined
  // Entries by size or quality that neither side names cannot be excluded.
  const isUnclear = images.some(
    (entry) =>
      (entry.size !== undefined && size === undefined) ||
      (entry.quality !== undefined && quality === undefined),
  )
  const isKnown = found !== undefined || perImage !== undefined
  return { amount: BigInt(count) * price * million, isExact: isKnown && !isUnclear && !isAssumed }
}
