import { applyHeaderEdits } from '../../../net/http/header-edits.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { allowedTrailers } from '../../../net/http/trailers.ts'
import { editsOf } from '../mutations.ts'
import type { HeaderMutation } from '../wire/messages.ts'
import { type Answer, ask, modesOfPart, nextContext, type Part } from './part.ts'

export type AskedTrailers =
  | { readonly kind: 'trailers'; readonly trailers: Headers | undefined }
  | Exclude<Answer, { kind: 'step' }>

/** Sends trailers, if the mode demands it, and returns those to forward. */
export async function askTrailers(part: Part, trailers: Headers | undefined): Promise<AskedTrailers> {
  if (trailers === undefined || !modesOfPart(part).trailers) return { kind: 'trailers', trailers }
  const { encoder, direction, session } = part
  const answer = await ask(part, 'trailers', encoder.trailers(direction, trailers, nextContext(part)))
  if (answer.kind !== 'step') return answer
  const edited = editTrailers(trailers, answer.step.headers)
  if (edited.kind === 'trailers') return edited
  session.fail(edited.reason)
  return edited
}

export type EditedTrailers =
  | { readonly kind: 'trailers'; readonly trailers: Headers | undefined }
  | { readonly kind: 'failed'; readonly reason: string }

/** Applies a mutation to a copy of trailers. */
export function editTrailers(trailers: Headers, mutation: HeaderMutation | undefined): EditedTrailers {
  if (mutation === undefined) return { kind: 'trailers', trailers }
  const edits = editsOf(mutation, trailers)
  if (edits.kind === 'invalid') return { kind: 'failed', reason: edits.reason }
  const edited = { ...trailers }
  applyHeaderEdits(edited, edits.edits)
  return { kind: 'trailers', trailers: allowedTrailers(edited) }
}
