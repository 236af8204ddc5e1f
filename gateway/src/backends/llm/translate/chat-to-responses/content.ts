import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Content of a message or of a result: a string is unchanged, parts become those of the Responses API. */
export function toContent(content: JsonValue | undefined, path: string, refusals: Refusals): JsonValue {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) {
    refusals.add(path, 'must be a string or a list of parts')
    return []
  }
  return content.flatMap((part, index) => {
    const translated = toPart(part, `${path}[${index}]`, refusals)
    return translated === undefined ? [] : [translated]
  })
}

/** Joins the texts and refusals of an assistant's turn. */
export function joinedText(content: JsonValue | undefined, path: string, refusals: Refusals): string {
  if (isAbsent(content)) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) {
    refusals.add(path, 'must be a string or a list of parts')
    return ''
  }
  let joined = ''
  for (const [index, part] of content.entries()) {
    const name = isJsonObject(part) && part.type === 'refusal' ? 'refusal' : 'text'
    const text = isJsonObject(part) && part.type === name ? part[name] : undefined
    if (typeof text === 'string') joined += text
    else refusals.add(`${path}[${index}].type`, 'must be text or refusal, with a string')
  }
  return joined
}

/** `cache_control` is a mark for the messages API that chat clients may add. */
const markFields = ['type', 'cache_control', 'prompt_cache_breakpoint']
const textFields: ReadonlySet<string> = new Set(['text', ...markFields])
const imageFields: ReadonlySet<string> = new Set(['image_url', ...markFields])
const fileFields: ReadonlySet<string> = new Set(['file', ...markFields])

function toPart(part: JsonValue, path: string, refusals: Refusals): JsonObject | undefined {
  if (!isJsonObject(part)) {
    refusals.add(path, 'must be an object')
    return undefined
  }
  const translated = toInputPart(part, path, refusals)
  const { prompt_cache_breakpoint: breakpoint } = part
  if (translated !== undefined && !isAbsent(breakpoint)) translated.prompt_cache_breakpoint = breakpoint
  return translated
}

function toInputPart(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  switch (part.type) {
    case 'text':
      refusals.addUnknown(part, textFields, path)
      if (typeof part.text !== 'string') refusals.add(`${path}.text`, 'must be a string')
      return { type: 'input_text', text: part.text ?? '' }
    case 'image_url':
      refusals.addUnknown(part, imageFields, path)
      return toImage(part, path, refusals)
    case 'file':
      refusals.addUnknown(part, fileFields, path)
      return toFile(part, path, refusals)
    case 'input_audio':
      refusals.add(`${path}.type`, 'the Responses API reads texts, images and files only')
      return undefined
    default:
      refusals.add(
        `${path}.type`,
        `parts of type "${part.type}" cannot be translated for the Responses API here`,
      )
      return undefined
  }
}

function toImage({ image_url: image }: JsonObject, path: string, refusals: Refusals): JsonObject {
  const { url, detail } = isJsonObject(image) ? image : {}
  if (typeof url !== 'string') refusals.add(`${path}.image_url.url`, 'must be a string')
  return { type: 'input_image', image_url: url ?? '', detail: detail ?? 'auto' }
}

/** `file_url` is a field of the Responses API: other translations to chat use it for linked documents. */
const sources: ReadonlySet<string> = new Set(['file_data', 'filename', 'file_id', 'file_url'])

function toFile({ file }: JsonObject, path: string, refusals: Refusals): JsonObject {
  const given = isJsonObject(file) ? file : {}
  refusals.addUnknown(given, sources, `${path}.file`)
  const present = [...sources].flatMap((name) => (isAbsent(given[name]) ? [] : [[name, given[name]]]))
  if (present.every(([name]) => name === 'filename'))
    refusals.add(`${path}.file`, 'must have file_data or file_id')
  return { type: 'input_file', ...Object.fromEntries(present) }
}
