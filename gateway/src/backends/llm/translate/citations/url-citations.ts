import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'

/** Characters of the whole text of an answer: those from `start` to before `end` are cited. */
export type TextRange = { readonly start: number; readonly end: number }

/** The annotation of a chat completion for a cited page. */
export function toAnnotation(
  url: string,
  title: JsonValue | undefined,
  { start, end }: TextRange,
): JsonObject {
  const name = typeof title === 'string' ? title : ''
  return { type: 'url_citation', url_citation: { start_index: start, end_index: end, url, title: name } }
}

/**
 * Annotations of a chat completion for the citations of a text block in the messages API. Chat has citations
 * of addresses only, so those of documents are removed.
 */
export function toAnnotations(citations: JsonValue | undefined, range: TextRange): JsonObject[] {
  if (!Array.isArray(citations)) return []
  return citations.flatMap((citation) => {
    if (!isJsonObject(citation)) return []
    const { url, source, title } = citation
    const address = String(url ?? source)
    return /^https?:\/\//i.test(address) ? [toAnnotation(address, title, range)] : []
  })
}

/** A citation of the messages API for an annotation of chat; undefined for annotations without an address. */
export function toTextCitation(annotation: JsonValue): JsonObject | undefined {
  const cited = isJsonObject(annotation) ? annotation.url_citation : undefined
  if (!isJsonObject(cited) || typeof cited.url !== 'string') return undefined
  return webCitation(cited.url, cited.title, '')
}

/** A citation of a page in the messages API. The index is a secret of Anthropic's search, and empty. */
export function webCitation(url: string, title: JsonValue | undefined, citedText: string): JsonObject {
  return {
    type: 'web_search_result_location',
    url,
    title: title ?? null,
    encrypted_index: '',
    cited_text: citedText,
  }
}

/** Text blocks of the messages API, in which a cited range of the text is a block of its own. */
export function citedBlocks(text: string, annotations: JsonValue | undefined): JsonObject[] {
  const blocks: JsonObject[] = []
  let written = 0
  const add = (end: number, citations: JsonObject[]) => {
    const part = text.slice(written, end)
    if (part !== '') blocks.push({ type: 'text', text: part, ...(citations.length > 0 && { citations }) })
    written = Math.max(written, end)
  }
  for (const { start, end, citations } of rangesOf(annotations, text.length)) {
    add(start, [])
    add(end, citations)
  }
  add(text.length, [])
  return blocks
}

type CitedRange = TextRange & { citations: JsonObject[] }

/** Cited ranges in order. Those that overlap an earlier one are part of it. */
function rangesOf(annotations: JsonValue | undefined, length: number): CitedRange[] {
  if (!Array.isArray(annotations)) return []
  const cited = annotations.flatMap((annotation) => {
    const citation = toTextCitation(annotation)
    return citation === undefined ? [] : [{ ...rangeIn(annotation, length), citation }]
  })
  const ranges: CitedRange[] = []
  for (const { start, end, citation } of cited.sort((one, other) => one.start - other.start)) {
    const last = ranges.at(-1)
    if (last !== undefined && start < last.end) last.citations.push(citation)
    else ranges.push({ start, end, citations: [citation] })
  }
  return ranges
}

/** The range of an annotation; the whole text without a valid one. */
function rangeIn(annotation: JsonValue, length: number): TextRange {
  const cited = isJsonObject(annotation) ? annotation.url_citation : undefined
  const { start_index: start, end_index: end } = isJsonObject(cited) ? cited : {}
  const isValid = typeof start === 'number' && typeof end === 'number' && start >= 0 && end > start
  return isValid && start < length ? { start, end: Math.min(end, length) } : { start: 0, end: length }
}
