import type { Catalog, CatalogModel, PriceName, Rates } from '../../../api/llm/costs.ts'

/** The record `modelCatalog`: two catalogs, of which `custom` has precedence. */
export type CatalogRecord = { readonly base?: Catalog; readonly custom?: Catalog }

export type ModelPlace = { readonly provider: string; readonly model: string }

export const priceNames: readonly PriceName[] = [
  'input',
  'output',
  'cacheRead',
  'cacheWrite',
  'reasoning',
  'inputAudio',
  'outputAudio',
  'inputImage',
  'outputImage',
]

/** Form of a price: digits with at most six decimals. */
const priceForm = /^\d{1,12}(\.\d{1,6})?$/

export function isPrice(text: string): boolean {
  return priceForm.test(text)
}

/** The entry of a model in a catalog. */
export function entryOf(
  catalog: Catalog | undefined,
  { provider, model }: ModelPlace,
): CatalogModel | undefined {
  const models = own(catalog?.providers, provider)?.models
  return own(models, model)
}

/** The catalog with an entry replaced, or removed if undefined. A provider without models is removed, too. */
export function withEntry(
  catalog: Catalog | undefined,
  { provider, model }: ModelPlace,
  entry: CatalogModel | undefined,
): Catalog {
  const models = replaced(own(catalog?.providers, provider)?.models, model, entry)
  const isEmpty = Object.keys(models).length === 0
  return { ...catalog, providers: replaced(catalog?.providers, provider, isEmpty ? undefined : { models }) }
}

/** An entry with other prices; its other members stay. Undefined without any of them. */
export function withRates(entry: CatalogModel | undefined, rates: Rates): CatalogModel | undefined {
  const { rates: _, ...rest } = entry ?? {}
  const next = Object.keys(rates).length === 0 ? rest : { ...rest, rates }
  return Object.keys(next).length === 0 ? undefined : next
}

function own<Value>(members: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined {
  return members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined
}

function replaced<Value>(
  members: Readonly<Record<string, Value>> | undefined,
  name: string,
  value: Value | undefined,
): Record<string, Value> {
  const rest = Object.entries(members ?? {}).filter(([key]) => key !== name)
  return Object.fromEntries(value === undefined ? rest : [...rest, [name, value]])
}
