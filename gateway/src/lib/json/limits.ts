import { closeBrace, closeBracket, colon, openBrace, openBracket, quote } from './characters.ts'
import { endOfString } from './string.ts'

/** Limits on the structure of JSON text, checked before parsing. */
export type JsonLimits = {
  /** Nesting depth; the outermost object is level 1. */
  readonly maxDepth: number
  /** Members of one object. Parsing an object of 900,000 distinct keys takes 0.5 s. */
  readonly maxMembers: number
  /** Objects, arrays and members together; a body of only `{}` takes sixty times its size in memory. */
  readonly maxElements: number
}

/** Defaults of `frontendPolicies.http.json`, and limits of upstream responses. */
export const defaultJsonLimits: JsonLimits = { maxDepth: 200, maxMembers: 10_000, maxElements: 100_000 }

/** Limits of unchecked responses: embeddings of many texts are millions of numbers. */
export const answerLimits: JsonLimits = { maxDepth: 200, maxMembers: 100_000, maxElements: 1_000_000 }

/** List items per element: parsing `0,` costs a fifteenth of parsing a member. */
export const itemsPerElement = 10

/** Reason for the rejection of a text, for messages: `request body is …`. */
export function tooDeep({ maxDepth }: JsonLimits): string {
  return `nested deeper than ${maxDepth} levels`
}

export function tooManyElements({ maxElements }: JsonLimits): string {
  return `of more than ${maxElements} objects, arrays and members`
}

export function tooManyItems({ maxElements }: JsonLimits): string {
  return `of more than ${maxElements * itemsPerElement} list items and members`
}

export function tooManyMembers({ maxMembers }: JsonLimits): string {
  return `an object of more than ${maxMembers} members`
}

/**
 * Whether one object has more members than allowed. Only texts with more colons than that need this second
 * scan.
 */
export function exceedsMembers(text: string, { maxMembers, maxDepth }: JsonLimits): boolean {
  const counts = new Uint32Array(maxDepth + 1)
  let depth = 0
  for (let index = 0; index < text.length; index += 1) {
    switch (text.charCodeAt(index)) {
      case quote:
        index = endOfString(text, index)
        break
      case colon: {
        const count = (counts[depth] ?? 0) + 1
        if (count > maxMembers) return true
        counts[depth] = count
        break
      }
      case openBrace:
      case openBracket:
        depth += 1
        counts[depth] = 0
        break
      case closeBrace:
      case closeBracket:
        depth = Math.max(0, depth - 1)
        break
    }
  }
  return false
}
