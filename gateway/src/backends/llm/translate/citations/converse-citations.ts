import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { webCitation } from './url-citations.ts'

/** A kind of place in documents: names in the messages API and in the Converse API. */
type Place = {
  readonly type: string
  readonly location: string
  /** Names of the index of the document, and of the start and the end of the cited part. */
  readonly names: readonly [index: string, start: string, end: string]
  readonly index: string
}

/**
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CitationLocation.html and
 * https://docs.anthropic.com/en/docs/build-with-claude/citations
 */
const places: readonly Place[] = [
  {
    type: 'char_location',
    location: 'documentChar',
    names: ['document_index', 'start_char_index', 'end_char_index'],
    index: 'documentIndex',
  },
  {
    type: 'page_location',
    location: 'documentPage',
    names: ['document_index', 'start_page_number', 'end_page_number'],
    index: 'documentIndex',
  },
  {
    type: 'content_block_location',
    location: 'documentChunk',
    names: ['document_index', 'start_block_index', 'end_block_index'],
    index: 'documentIndex',
  },
  {
    type: 'search_result_location',
    location: 'searchResultLocation',
    names: ['search_result_index', 'start_block_index', 'end_block_index'],
    index: 'searchResultIndex',
  },
]

/** A citation of the messages API for one of the Converse API; undefined without a place. */
export function fromConverseCitation(citation: JsonValue | undefined): JsonObject | undefined {
  if (!isJsonObject(citation) || !isJsonObject(citation.location)) return undefined
  const { title, source, location } = citation
  const text = sourceText(citation.sourceContent)
  const { web } = location
  if (isJsonObject(web)) return typeof web.url === 'string' ? webCitation(web.url, title, text) : undefined
  const place = places.find((one) => isJsonObject(location[one.location]))
  const cited = place && location[place.location]
  if (place === undefined || !isJsonObject(cited)) return undefined
  const [index, start, end] = place.names
  const isResult = place.location === 'searchResultLocation'
  return {
    type: place.type,
    cited_text: text,
    [index]: cited[place.index] ?? 0,
    ...(isResult ? { source: source ?? '', title: title ?? null } : { document_title: title ?? null }),
    [start]: cited.start ?? 0,
    [end]: cited.end ?? 0,
  }
}

/** A citation of the Converse API for one of the messages API; undefined for an unknown type. */
export function toConverseCitation(citation: JsonValue | undefined): JsonObject | undefined {
  if (!isJsonObject(citation)) return undefined
  const { type, url, source, cited_text: text } = citation
  const title = citation.title ?? citation.document_title
  const location = typeof url === 'string' ? webLocation(url) : placeOf(citation)
  if (location === undefined || type === undefined) return undefined
  return {
    ...(typeof title === 'string' ? { title } : undefined),
    ...(typeof source === 'string' ? { source } : undefined),
    ...(typeof text === 'string' && text !== '' ? { sourceContent: [{ text }] } : undefined),
    location,
  }
}

function webLocation(url: string): JsonObject {
  const domain = URL.parse(url)?.hostname
  return { web: { url, ...(domain === undefined ? undefined : { domain }) } }
}

function placeOf(citation: JsonObject): JsonObject | undefined {
  const place = places.find(({ type }) => type === citation.type)
  if (place === undefined) return undefined
  const [index, start, end] = place.names
  const cited = { [place.index]: citation[index] ?? 0, start: citation[start] ?? 0, end: citation[end] ?? 0 }
  return { [place.location]: cited }
}

/** Texts of a list of the Converse API. */
export function sourceText(content: JsonValue | undefined): string {
  if (!Array.isArray(content)) return ''
  return content
    .map((part) => (isJsonObject(part) && typeof part.text === 'string' ? part.text : ''))
    .join('')
}
