import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Calls `visit` for each part of a content list. */
export function eachPart(
  content: JsonValue | undefined,
  path: string,
  refusals: Refusals,
  visit: (part: JsonObject, path: string) => void,
): void {
  if (!Array.isArray(content)) {
    refusals.add(path, 'must be a string or a list of parts')
    return
  }
  for (const [index, part] of content.entries()) {
    if (isJsonObject(part)) visit(part, `${path}[${index}]`)
    else refusals.add(`${path}[${index}]`, 'must be an object')
  }
}

/** Joins the texts of content that may contain only text. */
export function joinedText(content: JsonValue | undefined, path: string, refusals: Refusals): string {
  if (typeof content === 'string') return content
  const texts: string[] = []
  eachPart(content, path, refusals, (part, at) => {
    if (textTypes.has(part.type ?? '') && typeof part.text === 'string') texts.push(part.text)
    else refusals.add(`${at}.type`, 'must be a text here')
  })
  return texts.join('\n\n')
}

export const textTypes: ReadonlySet<JsonValue> = new Set(['input_text', 'output_text', 'text'])

/** Translates a part of a user's message or of the output of a tool; undefined for refused parts. */
export function toPart(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const { type } = part
  if (textTypes.has(type ?? '')) {
    if (typeof part.text === 'string') return { type: 'text', text: part.text }
    refusals.add(`${path}.text`, 'must be a string')
    return undefined
  }
  if (type === 'input_image') return toImage(part, path, refusals)
  if (type === 'input_file') return toFile(part, path, refusals)
  if (type === 'input_audio' && isJsonObject(part.input_audio))
    return { type: 'input_audio', input_audio: part.input_audio }
  refusals.add(`${path}.type`, `parts of type "${type}" cannot be translated for chat completions`)
  return undefined
}

const stored = 'uploaded files exist at their own provider only'

function toImage(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const { image_url: url, detail, file_id: file } = part
  if (!isAbsent(file)) refusals.add(`${path}.file_id`, stored)
  else if (typeof url !== 'string') refusals.add(`${path}.image_url`, 'must be a string')
  return {
    type: 'image_url',
    image_url: { url: url ?? '', ...(isAbsent(detail) ? undefined : { detail }) },
  }
}

function toFile(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const { file_data: data, filename, file_id: file, file_url: url } = part
  if (!isAbsent(file)) refusals.add(`${path}.file_id`, stored)
  else if (!isAbsent(url)) refusals.add(`${path}.file_url`, 'chat completions need the content in file_data')
  else if (typeof data !== 'string') refusals.add(`${path}.file_data`, 'must be a string')
  return {
    type: 'file',
    file: { file_data: data ?? '', ...(isAbsent(filename) ? undefined : { filename }) },
  }
}
