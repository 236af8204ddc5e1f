import {
  type ExactJsonObject,
  type ExactJsonValue,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '../../../lib/json/json.ts'
import type { Usage, UsageUnits } from '../../../pipeline/facts/llm-facts.ts'
import type { Endpoint } from '../request/endpoints.ts'

/** More is a defect: a day of audio. */
const maxUnits = 100_000
/** Most images that a request may announce. */
const maxImages = 1_000

/**
 * Amounts besides tokens in a response object or in a stream event; undefined without any. Sizes of images
 * are those of the response only.
 */
export function unitsIn(endpoint: Endpoint, message: JsonObject): UsageUnits | undefined {
  switch (endpoint) {
    case 'images':
    case 'image_edits':
    case 'image_variations':
      return imagesIn(message)
    case 'transcriptions':
    case 'translations':
      return secondsIn(message)
    case 'rerank':
    case 'rerank_v2':
      return searchesIn(message)
    case 'messages':
      return anthropicSearches(message)
    case 'responses':
      return responsesSearches(message)
    default:
      return undefined
  }
}

/** A call, and the units of its response object. */
type UnitFacts = {
  readonly endpoint: Endpoint | 'passthrough'
  readonly request: ExactJsonObject
  readonly units: UsageUnits | undefined
}

/** Usage with the amounts of its call, completed by those that only the request has. */
export function withUnits(usage: Usage, { endpoint, request, units = usage.units }: UnitFacts): Usage {
  const named = unitsOfRequest(endpoint, request)
  if (units === undefined) return named === undefined ? usage : { ...usage, units: named }
  const { images } = units
  if (images === undefined) return { ...usage, units }
  const size = images.size ?? named?.images?.size
  const quality = images.quality ?? named?.images?.quality
  return { ...usage, units: { images: { count: images.count, size, quality } } }
}

/** Amounts that a request determines before its response; undefined without any. */
export function unitsOfRequest(
  endpoint: Endpoint | 'passthrough',
  request: ExactJsonObject,
): UsageUnits | undefined {
  switch (endpoint) {
    case 'speech': {
      const { input } = request
      return typeof input === 'string' ? { characters: charactersOf(input) } : undefined
    }
    case 'images':
    case 'image_edits':
    case 'image_variations': {
      const [size, quality] = [chosen(request, 'size'), chosen(request, 'quality')]
      return { images: { count: countOf(request['n']), size, quality, isAssumed: true } }
    }
    default:
      return undefined
  }
}

/** Numbers in forms are texts. */
function countOf(value: ExactJsonValue | undefined): number {
  const count = typeof value === 'string' ? Number(value) : value
  return typeof count === 'number' && Number.isInteger(count) && count > 0 && count <= maxImages ? count : 1
}

/** Code points, which services charge in place of UTF-16 code units. */
function charactersOf(text: string): number {
  let count = 0
  for (const _ of text) count += 1
  return count
}

function chosen(request: ExactJsonObject, name: string): string | undefined {
  const value = request[name]
  return typeof value === 'string' && value !== 'auto' ? value : undefined
}

/** https://platform.openai.com/docs/api-reference/images/object */
function imagesIn({ data, size, quality }: JsonObject): UsageUnits | undefined {
  if (!Array.isArray(data) || data.length === 0) return undefined
  return {
    images: {
      count: data.length,
      size: typeof size === 'string' ? size : undefined,
      quality: typeof quality === 'string' ? quality : undefined,
    },
  }
}

/** https://platform.openai.com/docs/api-reference/audio: seconds as usage, or `duration` of the audio. */
function secondsIn({ usage, duration }: JsonObject): UsageUnits | undefined {
  const seconds = amount(isJsonObject(usage) ? usage['seconds'] : undefined) ?? amount(duration)
  return seconds === undefined ? undefined : { seconds }
}

/** https://docs.cohere.com/reference/rerank */
function searchesIn({ meta }: JsonObject): UsageUnits | undefined {
  const billed = isJsonObject(meta) ? meta['billed_units'] : undefined
  const searches = isJsonObject(billed) ? amount(billed['search_units']) : undefined
  return searches === undefined ? undefined : { searches: Math.ceil(searches) }
}

/** https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool#usage-and-pricing */
function anthropicSearches({ message, usage: own }: JsonObject): UsageUnits | undefined {
  const usage = isJsonObject(message) ? message['usage'] : own
  const tools = isJsonObject(usage) ? usage['server_tool_use'] : undefined
  const webSearches = isJsonObject(tools) ? amount(tools['web_search_requests']) : undefined
  return webSearches === undefined || webSearches === 0 ? undefined : { webSearches: Math.ceil(webSearches) }
}

/** https://platform.openai.com/docs/guides/tools-web-search: each search is an item of the output. */
function responsesSearches({ response, output: own }: JsonObject): UsageUnits | undefined {
  const output = isJsonObject(response) ? response['output'] : own
  if (!Array.isArray(output)) return undefined
  const webSearches = output.filter(isWebSearch).length
  return webSearches === 0 ? undefined : { webSearches }
}

/** Opening and reading a page are not charged. */
function isWebSearch(item: JsonValue): boolean {
  if (!isJsonObject(item) || item['type'] !== 'web_search_call') return false
  const { action } = item
  return !isJsonObject(action) || action['type'] === undefined || action['type'] === 'search'
}

/** Some servers report `duration` as a text. */
function amount(value: JsonValue | undefined): number | undefined {
  const number = typeof value === 'string' && /^\d{1,9}(\.\d{1,9})?$/.test(value) ? Number(value) : value
  return typeof number === 'number' && number >= 0 && number <= maxUnits ? number : undefined
}
