import { type CelProgram, tryEvaluate } from '../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import { CelEvaluationError } from '../cel/failure.ts'
import { bodyOfResult, headerOfResult } from '../cel/results.ts'
import { isEditableHeader, isHeaderValue } from '../net/http/header-edits.ts'
import type { Headers } from '../net/http/headers.ts'
import { mayHaveBody } from '../net/http-client/reply-edits.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Policy } from '../pipeline/policy.ts'
import { cel, type Infer, integer, map, object, optional, string } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** Status and body of a response of the gateway. */
export const responseFields = {
  status: integer({ doc: 'Response status.', example: 404 }, { min: 200, max: 599 }),
  body: optional(
    string({
      doc: 'Response body, sent as `text/plain` unless `headers` or `responseHeaderModifier` set another `content-type`.',
      default: '',
      example: 'not here',
    }),
  ),
  bodyExpression: optional(
    cel({
      doc: 'Expression of the response body, in place of `body`: text as it is, other values as JSON. The response has status 500 if the evaluation fails.',
      example: '{"path": request.path}',
    }),
  ),
}

/** `directResponse`: response of the gateway. */
export const directResponseSchema = object(
  {
    ...responseFields,
    headers: optional(
      map(cel({ doc: 'Expression of the value. A field without a value is omitted.' }), {
        doc: 'Header fields of the response.',
        example: { 'retry-after': '"60"' },
      }),
    ),
  },
  { doc: 'Responds to every request without a backend.' },
)

export type DirectResponseConfig = Infer<typeof directResponseSchema>

/** Reports a body that the status does not allow, headers that cannot be set and invalid expressions. */
export function checkDirectResponse(
  { status, body = '', bodyExpression, headers = {} }: DirectResponseConfig,
  variables: ReadonlySet<string>,
  report: ReportIssue,
) {
  if (body !== '' && !mayHaveBody(status)) report(['body'], `an answer with status ${status} has no body`)
  if (bodyExpression !== undefined) {
    if (!mayHaveBody(status)) report(['bodyExpression'], `an answer with status ${status} has no body`)
    if (body !== '') report(['bodyExpression'], 'replaces body: keep one of them')
    checkCel(bodyExpression, variables, (message) => report(['bodyExpression'], message))
  }
  for (const [name, source] of Object.entries(headers)) {
    if (!isEditableHeader(name.toLowerCase())) report(['headers', name], 'is not a header that can be set')
    checkCel(source, variables, (message) => report(['headers', name], message))
  }
}

/** The expressions of a response with their paths. */
export function expressionsOfDirectResponse({ bodyExpression, headers = {} }: DirectResponseConfig) {
  return [
    ...(bodyExpression === undefined ? [] : [{ source: bodyExpression, path: ['bodyExpression'] }]),
    ...Object.entries(headers).map(([name, source]) => ({ source, path: ['headers', name] })),
  ]
}

/**
 * Compiles a response. A fixed body is shared; headers are created per reply, because other policies modify
 * them.
 */
export function compileDirectResponse(
  { status, body = '', bodyExpression, headers: configured = {} }: DirectResponseConfig,
  variables: ReadonlySet<string>,
): Policy {
  const fixed = body === '' ? undefined : Buffer.from(body)
  const program = bodyExpression === undefined ? undefined : compileCheckedCel(bodyExpression, variables)
  const fields = Object.entries(configured).map(([name, source]) => ({
    name: name.toLowerCase(),
    program: compileCheckedCel(source, variables),
  }))
  return {
    name: 'direct response',
    onRequest(exchange) {
      const { facts } = exchange
      const result = program && bodyOf(program, facts)
      if (result?.kind === 'failed') {
        exchange.log.failure ??= result.error
        return refuse(exchange, failed)
      }
      const bytes = result === undefined ? fixed : result.bytes
      const headers: Headers = bytes === undefined ? {} : { 'content-type': 'text/plain; charset=utf-8' }
      if (result?.isObject) headers['content-type'] = 'application/json'
      for (const field of fields) setField(headers, field, facts)
      return { status, headers, body: bytes?.byteLength === 0 ? undefined : bytes }
    },
    explain: () => ({ status }),
  }
}

type Body =
  | { readonly kind: 'body'; readonly bytes: Uint8Array; readonly isObject: boolean }
  | { readonly kind: 'failed'; readonly error: CelEvaluationError }

function bodyOf(program: CelProgram, facts: object): Body {
  try {
    const value = program.evaluate(facts)
    return { kind: 'body', bytes: bodyOfResult(value), isObject: typeof value === 'object' }
  } catch (error) {
    if (error instanceof CelEvaluationError) return { kind: 'failed', error }
    throw error
  }
}

function setField(headers: Headers, { name, program }: { name: string; program: CelProgram }, facts: object) {
  const result = tryEvaluate(program, facts)
  const value = result.kind === 'value' ? headerOfResult(result.value) : undefined
  if (value !== undefined && isHeaderValue(value)) headers[name] = value
}

const failed = {
  status: 500,
  code: 'direct_response_failed',
  message: 'the response of this route cannot be created',
}
