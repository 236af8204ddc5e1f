import { formatMoney } from '../../../format/money.ts'

/** A price per million tokens. `0` is free, an absent one unknown. */
export function PriceText({ price, absent = 'none' }: { price: string | undefined; absent?: string }) {
  if (price === undefined) return <span className="text-ink-faint">{absent}</span>
  return Number(price) === 0 ? 'free' : formatMoney(Number(price))
}
