import type { JsonObject } from '../../../../lib/json/json.ts'
import { findAmbiguousInvokeName } from '../../../../pipeline/llm-names.ts'
import type { ContentReader, GuardedText, TextPart } from '../content-reader.ts'
import { stringsIn } from '../parts.ts'

/**
 * `InvokeModel` of Amazon Bedrock with a body of any model: all texts of the body. A long text without spaces
 * that is base64 is an image or another file.
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
  return stringsIn(body, []).filter(({ text }) => !isFile(text))
}

const minFileLength = 1024

function isFile(text: string): boolean {
  return text.length >= minFileLength && /^[A-Za-z0-9+/_=-]+$/.test(text)
}

/** A number of a path, so that texts of one member are in one element. */
function elementOf(path: readonly (string | number)[]): number {
  let element = 7
  for (const character of path.join('/')) element = (element * 31 + (character.codePointAt(0) ?? 0)) >>> 0
  return element
}
