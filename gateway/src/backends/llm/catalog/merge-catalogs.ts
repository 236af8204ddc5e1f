import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Catalog, CatalogModel, ModelCatalogConfig } from './config.ts'
import { readCatalog, readCatalogFile } from './read-catalog.ts'

/** A model of several catalogs. */
export type MergedModel = {
  readonly model: CatalogModel
  /** Index of the catalog of each price, and of the last one with `tiers`, `batch` and `units`. */
  readonly sources: Sources
}

type Sources = { readonly [field in keyof Rates | 'tiers' | 'batch' | 'units']?: number }

type Rates = NonNullable<CatalogModel['rates']>

/** Models by provider and name. */
export type MergedCatalog = ReadonlyMap<string, ReadonlyMap<string, MergedModel>>

/** Merges catalogs; later ones take precedence by price, and tiers are replaced as a list. */
export function mergeCatalogs(catalogs: ModelCatalogConfig, context: CompileContext): MergedCatalog {
  const merged = new Map<string, Map<string, MergedModel>>()
  for (const [index, entry] of catalogs.entries()) {
    const catalog = catalogOf(entry, index, context)
    for (const [provider, { models = {} }] of Object.entries(catalog.providers ?? {})) {
      const known = merged.get(provider) ?? new Map<string, MergedModel>()
      merged.set(provider, known)
      for (const [name, model] of Object.entries(models))
        known.set(name, mergeModels(known.get(name), { model, sources: sourcesOf(model, index) }))
    }
  }
  return merged
}

function catalogOf(
  { inline, file }: ModelCatalogConfig[number],
  index: number,
  context: CompileContext,
): Catalog {
  if (typeof inline === 'object') return inline
  return inline === undefined
    ? readCatalogFile(file, context)
    : readCatalog(inline, `config.modelCatalog[${index}].inline`, context)
}

function sourcesOf({ rates, ...others }: CatalogModel, index: number): Sources {
  const groups = (['tiers', 'batch', 'units'] as const).filter((name) => others[name] !== undefined)
  const fields = [...Object.keys(definedRates(rates)), ...groups]
  return Object.fromEntries(fields.map((field) => [field, index]))
}

function mergeModels(base: MergedModel | undefined, added: MergedModel): MergedModel {
  if (base === undefined) return added
  const { rates, batch, units, tiers, limits, tags } = base.model
  return {
    model: {
      rates: { ...rates, ...definedRates(added.model.rates) },
      batch: merged(batch, added.model.batch),
      units: merged(units, added.model.units),
      tiers: added.model.tiers ?? tiers,
      limits: added.model.limits === undefined ? limits : { ...limits, ...added.model.limits },
      tags: added.model.tags ?? tags,
    },
    sources: { ...base.sources, ...added.sources },
  }
}

/** Both groups of prices, by price; undefined without any. */
function merged<Prices extends object>(
  base: Prices | undefined,
  added: Prices | undefined,
): Prices | undefined {
  if (base === undefined || added === undefined) return added ?? base
  const defined = Object.entries(added).filter(([, price]) => price !== undefined)
  return { ...base, ...Object.fromEntries(defined) }
}

/** Without undefined prices, which would hide earlier ones. */
export function definedRates(rates: CatalogModel['rates']): NonNullable<CatalogModel['rates']> {
  return Object.fromEntries(Object.entries(rates ?? {}).filter(([, price]) => price !== undefined))
}
