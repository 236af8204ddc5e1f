import type { JsonObject } from '../../../../lib/json/json.ts'
import { findAmbiguousInvokeName } from '../../../../pipeline/llm-names.ts'
import type { ContentReader, GuardedText, TextPart } from '../content-reader.ts'
import { stringsIn } from '../parts.ts'

/**
 * `InvokeModel` of Amazon Bedrock with a body of any model: all texts of the body, except for base64 of
 * images and other media in members of the vendors for them.
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
  return stringsIn(body, []).filter((part) => !isMedia(part))
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

function isMedia({ text, path }: TextPart): boolean {
  if (text.length < minMediaLength) return false
  const member = path.findLast((key) => typeof key === 'string')
  return member !== undefined && mediaMembers.has(member) && /^[A-Za-z0-9+/_=-]+$/.test(text)
}

/** A number of a path, so that texts of one member are in one element. */
function elementOf(path: readonly (string | number)[]): number {
  let element = 7
  for (const character of path.join('/')) element = (element * 31 + (character.codePointAt(0) ?? 0)) >>> 0
  return element
}
