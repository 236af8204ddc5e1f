import type { FindAmbiguousName } from '../../../../lib/json/names.ts'
import type { Refusal } from '../../../../pipeline/errors.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { readRequestBody } from '../../../../pipeline/request-body.ts'
import type { RequestRules } from '../accept-call.ts'
import { invalidField, notJson, validateJson } from '../body-checks.ts'
import { type Form, readForm } from './form.ts'
import { readFormBoundary } from './media-type.ts'

type FormRequest = { kind: 'form'; form: Form } | { kind: 'refused'; refusal: Refusal }

/**
 * Reads a form, stores the body in the facts, and checks the texts of the form as a JSON body. `notForm`
 * refuses requests with another media type.
 */
export async function readFormRequest(
  exchange: Exchange,
  rules: RequestRules,
  { notForm, findAmbiguousName }: { notForm: Refusal; findAmbiguousName: FindAmbiguousName },
): Promise<FormRequest> {
  const found = readFormBoundary(exchange.facts.request.headers['content-type'])
  if (found === undefined) return { kind: 'refused', refusal: notForm }
  if (found.kind === 'invalid') return { kind: 'refused', refusal: invalidBoundary }
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return body
  exchange.facts.body = body.bytes
  const read = readForm(body.bytes, found.boundary)
  if (read.kind === 'invalid') return { kind: 'refused', refusal: invalidField(undefined, read.message) }
  const valid = validateJson(read.form.fields, findAmbiguousName)
  return valid.kind === 'refused' ? valid : { kind: 'form', form: read.form }
}

const invalidBoundary: Refusal = {
  ...notJson,
  message: 'content-type must have one boundary of letters, digits and hyphens, and no other parameter',
}
