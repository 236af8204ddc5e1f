import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import type { Facts } from '../exchange.ts'
import { hashedValue, mayBeCredential } from './credential-values.ts'

/** `config.standardAttributes`: CEL expressions of the user and the group of a request. */
export type StandardAttributesConfig = {
  readonly user?: string | undefined
  readonly group?: string | undefined
}

/** User and group of a request; undefined if it has none. */
export type StandardAttributes = {
  user(facts: Facts): string | undefined
  group(facts: Facts): string | undefined
}

/** Variables of `config.standardAttributes`. */
const attributeVariables: ReadonlySet<string> = new Set([
  'now',
  'request',
  'source',
  'jwt',
  'basicAuth',
  'apiKey',
])

/**
 * Compiles the attributes. An expression without a usable value leaves the attribute empty: it has no effect
 * on the request. `sensitive` lists headers whose values are hashed. Throws if an expression does not
 * compile.
 */
export function compileStandardAttributes(
  { user, group }: StandardAttributesConfig,
  sensitive?: ReadonlySet<string>,
): StandardAttributes {
  return {
    user:
      user === undefined ? defaultUser : evaluated(compileCheckedCel(user, attributeVariables), sensitive),
    group:
      group === undefined ? defaultGroup : evaluated(compileCheckedCel(group, attributeVariables), sensitive),
  }
}

/** The first of `apiKey.user`, `.name` and `.owner`, `jwt.sub`, `jwt.email`, `basicAuth.username`. */
function defaultUser({ apiKey, jwt, basicAuth }: Facts): string | undefined {
  return (
    textOf(apiKey?.['user']) ??
    textOf(apiKey?.['name']) ??
    textOf(apiKey?.['owner']) ??
    textOf(jwt?.['sub']) ??
    textOf(jwt?.['email']) ??
    textOf(basicAuth?.username)
  )
}

/** `apiKey.group`, else the first of `jwt.groups`. */
function defaultGroup({ apiKey, jwt }: Facts): string | undefined {
  const groups = jwt?.['groups']
  return textOf(apiKey?.['group']) ?? (Array.isArray(groups) ? textOf(groups[0]) : undefined)
}

function evaluated(
  program: CelProgram,
  sensitive?: ReadonlySet<string>,
): (facts: Facts) => string | undefined {
  const isCredential = mayBeCredential(program, sensitive)
  return (facts) => {
    try {
      const text = textOf(program.evaluate(facts))
      return isCredential && text !== undefined ? hashedValue(text) : text
    } catch (error) {
      if (error instanceof CelEvaluationError) return undefined
      throw error
    }
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : undefined
}
