import type { CelProgram } from '../../../cel/cel.ts'
import { compileCheckedCel } from '../../../cel/checked.ts'
import { CelEvaluationError } from '../../../cel/failure.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import { unavailable } from '../cloud/fetch-token.ts'
import { type AssumeRoleConfig, sessionRoots } from './config.ts'

/** Name and tags of a session of a role. */
export type RoleSession = { readonly name: string; readonly tags: readonly (readonly [string, string])[] }

const defaultName = 'tollgate'

/** Limits of https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html. */
export function isSessionName(text: string): boolean {
  return /^[\w+=,.@-]{2,64}$/.test(text)
}

/** Whether a text is a valid key or value of a tag. */
export function isTagText(text: string, maxLength: number): boolean {
  return text.length <= maxLength && /^[\p{L}\p{Z}\p{N}_.:/=+\-@]+$/u.test(text)
}

/**
 * Compiles name and tags of the sessions. The function throws `GatewayError` (`credential_forbidden`) if an
 * expression has no valid value for a request.
 */
export function compileSession({
  sessionName = defaultName,
  tags = [],
}: AssumeRoleConfig): (facts: Facts | undefined) => RoleSession {
  const nameOf =
    typeof sessionName === 'string'
      ? () => sessionName
      : textOf('sessionName', sessionName.expression, isSessionName)
  const valuesOf = tags.map(({ key, value = '', expression }) => {
    const read =
      expression === undefined
        ? () => value
        : textOf(`tag "${key}"`, expression, (text) => isTagText(text, 256))
    return (facts: Facts | undefined) => [key, read(facts)] as const
  })
  return (facts) => ({ name: nameOf(facts), tags: valuesOf.map((read) => read(facts)) })
}

/** A request without a valid value is denied: its costs would be attributed to another. */
function textOf(
  field: string,
  expression: string,
  isValid: (text: string) => boolean,
): (facts: Facts | undefined) => string {
  const program = compileCheckedCel(expression, sessionRoots)
  return (facts) => {
    if (facts === undefined) throw unavailable(`assumeRole: ${field} requires the request of a client`)
    const text = evaluate(program, facts)
    if (text !== undefined && isValid(text)) return text
    throw new GatewayError('credential_forbidden', 'the request has no valid identity for the backend', {
      cause: new Error(`credentials: assumeRole: the expression of ${field} has no valid value`),
    })
  }
}

function evaluate(program: CelProgram, facts: Facts): string | undefined {
  try {
    const value: unknown = program.evaluate(facts)
    return typeof value === 'object' || value === undefined ? undefined : String(value)
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}
