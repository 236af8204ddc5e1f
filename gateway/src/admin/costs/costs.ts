import type { CostPage, CostQuery } from '../../backends/llm/catalog/price-list.ts'
import type { ConfigTree } from '../../config/load/validate.ts'
import { isJsonObject } from '../../lib/json/json.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import { findKind, singletonName } from '../../resources/kinds.ts'
import type { Resources } from '../../resources/resources.ts'
import { valueAt } from '../../schema/path.ts'
import type { AdminCall, AdminEndpoint, AdminResult } from '../api.ts'
import { costQueryParameters } from './openapi.ts'

export type CostsOptions = {
  readonly resources: Pick<Resources, 'effective' | 'find' | 'status'>
  /** Reads a page of the prices of the active configuration. */
  read(query: CostQuery): Promise<CostPage>
}

/** A catalog of the configuration, in the order of precedence, lowest first. */
type Catalog = {
  /** `base` and `custom` are fields of the config resource `modelCatalog`. */
  readonly source: 'base' | 'custom' | 'file' | 'inline'
  /** Path of a catalog file. */
  readonly file?: string
  /** Models with at least one effective price from this catalog. */
  readonly models: number
}

const defaultLimit = 100
const maxLimit = 500
const maxTextLength = 200
const maxModels = 200

/** Endpoint of effective prices with their catalogs. */
export function costsEndpoint(options: CostsOptions): AdminEndpoint {
  return {
    path: '/api/costs',
    methods: { GET: { query: costQueryParameters, respond: (call) => listCosts(call, options) } },
  }
}

async function listCosts({ query }: AdminCall, options: CostsOptions): Promise<AdminResult> {
  const sources = catalogSources(options.resources)
  const read = readQuery(query, sources)
  if (read.kind === 'refused') return read
  const { models, total, used, providers, nextCursor } = await options.read(read.query)
  const catalogs = sources.map((source, index): Catalog => ({ ...source, models: used[index] ?? 0 }))
  return { kind: 'json', value: { catalogs, providers, models, total, nextCursor } }
}

type Sources = readonly Omit<Catalog, 'models'>[]

function readQuery(
  sent: ReadonlyMap<string, string>,
  sources: Sources,
): { readonly kind: 'query'; readonly query: CostQuery } | Refusal {
  const limit = Number(sent.get('limit') ?? defaultLimit)
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit)
    return refusal(400, `limit must be a whole number from 1 to ${maxLimit}`)
  for (const name of ['search', 'provider'])
    if ((sent.get(name)?.length ?? 0) > maxTextLength)
      return refusal(400, `${name} must have at most ${maxTextLength} characters`)
  const source = sent.get('source')
  if (source !== undefined && !sourceNames.includes(source))
    return refusal(400, `source must be ${sourceNames.join(', ')}`)
  const catalog = source === undefined ? undefined : sources.findLastIndex((one) => one.source === source)
  const models = sent.get('models')?.split(',', maxModels)
  const [search, provider, cursor] = ['search', 'provider', 'cursor'].map((name) => sent.get(name))
  return { kind: 'query', query: { search, provider, catalog, models, limit, cursor } }
}

const sourceNames: readonly string[] = ['base', 'custom', 'file', 'inline']

/**
 * Sources of the catalogs of the active configuration. Those of the database are before those of the file; in
 * file mode, `custom` is the last inline catalog that is not a text.
 */
function catalogSources({ effective, find, status }: CostsOptions['resources']): Sources {
  const { config, file } = effective()
  const [all, own] = [catalogsOf(config), catalogsOf(file)]
  const stored = all.length - own.length
  const fields = stored > 0 ? storedFields(find) : []
  const custom =
    status().mode === 'hybrid'
      ? -1
      : all.findLastIndex((catalog) => isJsonObject(valueAt(catalog, ['inline'])))
  return all.map((catalog, index): Sources[number] => {
    if (index < stored) return { source: fields[index] ?? 'base' }
    if (index === custom) return { source: 'custom' }
    return isInline(catalog) ? { source: 'inline' } : { source: 'file', file: fileOf(catalog) }
  })
}

function storedFields(find: Resources['find']): ('base' | 'custom')[] {
  const kind = findKind('modelCatalog')
  const found = kind && find(kind, singletonName)
  const value = found?.kind === 'found' ? found.envelope.value : undefined
  if (!isJsonObject(value)) return []
  return (['base', 'custom'] as const).filter((field) => value[field] !== undefined)
}

function catalogsOf(config: ConfigTree): readonly unknown[] {
  const catalogs = valueAt(config, ['config', 'modelCatalog'])
  return Array.isArray(catalogs) ? catalogs : []
}

function isInline(catalog: unknown): boolean {
  return valueAt(catalog, ['inline']) !== undefined
}

function fileOf(catalog: unknown): string {
  const file = valueAt(catalog, ['file'])
  return typeof file === 'string' ? file : ''
}
