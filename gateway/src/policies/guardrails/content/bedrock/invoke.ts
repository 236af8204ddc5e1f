import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { JsonPath } from '../../../../lib/json/splice.ts'
import { findAmbiguousInvokeName } from '../../../../pipeline/llm-names.ts'
import type { ContentReader, GuardedText, TextPart } from '../content-reader.ts'
import { base64Text } from '../media-text.ts'
import { stringsIn } from '../parts.ts'

/**
 * `InvokeModel` of Amazon Bedrock with a body of any model: all texts of the body, also those in base64, but
 * no base64 of images and other media in members of the vendors for them.
 */
export const invokeContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  emptyLogprobs: 'null',
  findAmbiguousName: findAmbiguousInvokeName,
  request: (body) => bodyText('user', body),
  reply: (body) => bodyText('assistant', body),
  event(event, found) {
    // Each member of the chunks has a text of its own, which the chunks extend.
    for (const { text, path } of textsIn(event))
      found({ element: elementOf(path), part: 0, text, path, repeats: false })
  },
}

function bodyText(role: string, body: JsonObject): GuardedText[] {
  const parts = textsIn(body)
  return parts.length === 0 ? [] : [{ role, separator: '\n', parts }]
}

function textsIn(body: JsonObject): TextPart[] {
  return stringsIn(body, []).flatMap((part) => textsOf(part, body))
}

/**
 * Members of media in requests and responses of the models. In other members, base64 is text too: words
 * joined by `_` have the same characters, and any text can begin with the signature of a file.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html
 */
const mediaMembers: ReadonlySet<string> = new Set([
  // Amazon Nova and Titan
  ...[
    'bytes',
    'image',
    'images',
    'maskImage',
    'inputImage',
    'conditionImage',
    'referenceImage',
    'sourceImage',
  ],
  // Stability AI
  ...['base64', 'mask', 'init_image', 'mask_image', 'style_image', 'subject_image'],
  ...['background_reference', 'light_reference'],
  // Luma, Mistral, TwelveLabs
  ...['data', 'base64String'],
])

const minMediaLength = 1024

/** A text itself, a text in base64, or nothing for media. */
function textsOf(part: TextPart, body: JsonObject): TextPart[] {
  const { text, path } = part
  const member = path.findLast((key) => typeof key === 'string')
  const [, prefix, base64] = base64Form.exec(text) ?? []
  if (member === undefined || !mediaMembers.has(member) || prefix === undefined || base64 === undefined)
    return [part]
  const decoded = base64Text(base64, { type: formatAt(body, path.slice(0, -2)), path, prefix })
  if (decoded.length > 0) return decoded
  return text.length < minMediaLength ? [part] : []
}

const base64Form = /^((?:\s*data:[\w/.+;= -]{0,200},)?)([A-Za-z0-9+/_\s-]*[=\s]*)$/i

/** The format of a document, around its source. */
function formatAt(body: JsonObject, path: JsonPath): string {
  let value: JsonValue | undefined = body
  for (const key of path) {
    if (Array.isArray(value)) value = value[Number(key)]
    else value = isJsonObject(value) ? value[key] : undefined
  }
  const format = isJsonObject(value) ? value['format'] : undefined
  return typeof format === 'string' ? format : ''
}

/** A number of a path, so that texts of one member are in one element. */
function elementOf(path: readonly (string | number)[]): number {
  let element = 7
  for (const character of path.join('/')) element = (element * 31 + (character.codePointAt(0) ?? 0)) >>> 0
  return element
}
