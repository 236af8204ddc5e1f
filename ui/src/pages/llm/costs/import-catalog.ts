import type { Catalog, CatalogModel, PriceName, Rates, Units } from '../../../api/llm/costs.ts'
import { isObject } from '../../../schema-form/model/value.ts'
import { isPrice } from './catalog-edit.ts'

/** A price list of a file in the form of a catalog, or the reason why the file is none. */
export type ImportedCatalog =
  | { readonly kind: 'catalog'; readonly format: string; readonly catalog: Catalog; readonly models: number }
  | { readonly kind: 'invalid'; readonly message: string }

const formats =
  'The file has no known form: a catalog of Tollgate, api.json of models.dev, or model_prices_and_context_window.json of LiteLLM.'

/** Reads a price list: a catalog, or a list of models.dev or LiteLLM. Only `providers` are included. */
export function readPriceList(text: string, providers: readonly string[]): ImportedCatalog {
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    return { kind: 'invalid', message: 'The file is not JSON.' }
  }
  if (!isObject(list)) return { kind: 'invalid', message: formats }
  for (const [format, read] of readers) {
    const entries = read(list)
    if (entries === undefined) continue
    const kept = entries.filter(({ provider }) => providers.includes(provider))
    if (kept.length === 0)
      return { kind: 'invalid', message: `The file (${format}) has no price of a provider of this gateway.` }
    return { kind: 'catalog', format, ...catalogOf(kept) }
  }
  return { kind: 'invalid', message: formats }
}

type Entry = { readonly provider: string; readonly model: string; readonly entry: CatalogModel }
type List = Readonly<Record<string, unknown>>

const readers: readonly (readonly [format: string, read: (list: List) => readonly Entry[] | undefined])[] = [
  ['catalog', readOwn],
  ['models.dev', readModelsDev],
  ['LiteLLM', readLiteLlm],
]

function catalogOf(entries: readonly Entry[]): { catalog: Catalog; models: number } {
  const providers = new Map<string, Map<string, CatalogModel>>()
  for (const { provider, model, entry } of entries) {
    const models = providers.get(provider) ?? new Map<string, CatalogModel>()
    providers.set(provider, models)
    models.set(model, entry)
  }
  const members = [...providers].map(
    ([name, models]) => [name, { models: Object.fromEntries(models) }] as const,
  )
  const models = [...providers.values()].reduce((sum, { size }) => sum + size, 0)
  return { catalog: { providers: Object.fromEntries(members) }, models }
}

function readOwn(list: List): readonly Entry[] | undefined {
  const { providers } = list
  if (!isObject(providers)) return undefined
  return Object.entries(providers).flatMap(([provider, details]) => {
    const models = isObject(details) && isObject(details['models']) ? details['models'] : {}
    // The gateway checks the entries before they are stored.
    return Object.entries(models).map(([model, entry]) => ({ provider, model, entry: entry as CatalogModel }))
  })
}

/** Names of providers of the gateway by those of models.dev. */
const modelsDevNames: Readonly<Record<string, string>> = {
  google: 'gemini',
  'fireworks-ai': 'fireworks',
  'together-ai': 'togetherai',
  'ollama-cloud': 'ollama',
}

/** `{provider: {models: {name: {cost: {input, output, cache_read, ...}, limit}}}}`: dollars per million tokens. */
function readModelsDev(list: List): readonly Entry[] | undefined {
  const providers = Object.entries(list).filter(
    ([, provider]) => isObject(provider) && isObject(provider['models']),
  )
  if (providers.length === 0) return undefined
  return providers.flatMap(([name, provider]) => {
    const models = isObject(provider) && isObject(provider['models']) ? provider['models'] : {}
    return Object.entries(models).flatMap(([model, details]) => {
      const { cost, limit } = isObject(details) ? details : {}
      const rates = isObject(cost)
        ? ratesOf({
            input: cost['input'],
            output: cost['output'],
            cacheRead: cost['cache_read'],
            cacheWrite: cost['cache_write'],
            reasoning: cost['reasoning'],
            inputAudio: cost['input_audio'],
            outputAudio: cost['output_audio'],
          })
        : {}
      return entryOf(
        { provider: modelsDevNames[name] ?? name, model },
        { rates },
        {
          contextWindow: isObject(limit) ? limit['context'] : undefined,
          maxOutputTokens: isObject(limit) ? limit['output'] : undefined,
        },
      )
    })
  })
}

/** Names of providers of the gateway by those of LiteLLM. */
const liteLlmNames: Readonly<Record<string, string>> = {
  'text-completion-openai': 'openai',
  together_ai: 'togetherai',
  fireworks_ai: 'fireworks',
  cohere_chat: 'cohere',
}

/** `{name: {litellm_provider, input_cost_per_token, ...}}`: dollars per token. */
function readLiteLlm(list: List): readonly Entry[] | undefined {
  const models = Object.entries(list).filter(
    ([, one]) => isObject(one) && typeof one['litellm_provider'] === 'string',
  )
  if (models.length === 0) return undefined
  return models.flatMap(([name, details]) => {
    if (!isObject(details)) return []
    const given = String(details['litellm_provider'])
    const perMillion = (field: string) => {
      const price = details[field]
      return typeof price === 'number' ? price * 1e6 : undefined
    }
    const rates = ratesOf({
      input: perMillion('input_cost_per_token'),
      output: perMillion('output_cost_per_token'),
      cacheRead: perMillion('cache_read_input_token_cost'),
      cacheWrite: perMillion('cache_creation_input_token_cost'),
      reasoning: perMillion('output_cost_per_reasoning_token'),
      inputAudio: perMillion('input_cost_per_audio_token'),
      outputAudio: perMillion('output_cost_per_audio_token'),
      inputImage: perMillion('input_cost_per_image_token'),
      outputImage: perMillion('output_cost_per_image_token'),
    })
    const batch = ratesOf({
      input: perMillion('input_cost_per_token_batches'),
      output: perMillion('output_cost_per_token_batches'),
    })
    const place = { provider: liteLlmNames[given] ?? given, model: name.replace(`${given}/`, '') }
    return entryOf(
      place,
      { rates, batch, units: unitsOf(details) },
      {
        contextWindow: details['max_input_tokens'],
        maxOutputTokens: details['max_output_tokens'],
      },
    )
  })
}

function entryOf(
  { provider, model }: { provider: string; model: string },
  prices: Pick<CatalogModel, 'rates' | 'batch' | 'units'>,
  sizes: { contextWindow: unknown; maxOutputTokens: unknown },
): readonly Entry[] {
  const given = Object.entries(prices).filter(([, group]) => Object.keys(group ?? {}).length > 0)
  if (given.length === 0 || model === '') return []
  const limits = Object.fromEntries(
    Object.entries(sizes).filter(
      ([, size]) => typeof size === 'number' && Number.isInteger(size) && size > 0,
    ),
  )
  const entry = Object.fromEntries(given)
  return [{ provider, model, entry: Object.keys(limits).length === 0 ? entry : { ...entry, limits } }]
}

/** Prices of LiteLLM by other units; the cost of images by pixels is not included. */
function unitsOf(details: List): Units {
  const { mode } = details
  const perImage = details['output_cost_per_image'] ?? details['input_cost_per_image']
  const perSecond = details['input_cost_per_second']
  const prices = {
    perImage: mode === 'image_generation' ? perImage : undefined,
    perMinute: mode === 'audio_transcription' ? times(perSecond, 60) : undefined,
    perMillionCharacters: times(details['input_cost_per_character'], 1e6),
    perThousandSearches: times(details['input_cost_per_query'], 1e3),
  }
  return pricesOf(prices)
}

function times(price: unknown, factor: number): number | undefined {
  return typeof price === 'number' && price > 0 ? price * factor : undefined
}

/** Prices as decimal texts with at most six decimals; others are skipped. */
function ratesOf(given: Readonly<{ [name in PriceName]?: unknown }>): Rates {
  return pricesOf(given)
}

function pricesOf(given: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      if (typeof value !== 'number' || !(value >= 0)) return []
      const text = value.toFixed(6).replace(/\.?0+$/, '')
      return isPrice(text) ? [[name, text]] : []
    }),
  )
}
