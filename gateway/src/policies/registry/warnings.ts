import { comparesField, referencesVariable } from '../../cel/references.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { ruleSource } from '../../pipeline/rules.ts'
import { formatPath } from '../../schema/path.ts'
import type { TrafficKind } from './cel-variables.ts'
import { expressionsOf } from './expressions.ts'
import type { PolicyScope } from './scope.ts'

/** Logs policies that are valid but likely mistakes, once per set of policies and again after a change. */
export function warnAboutPolicies(
  scopes: readonly PolicyScope[],
  context: CompileContext,
  kind: TrafficKind,
): void {
  // All data planes compile the configuration; one of them warns.
  if (context.memory.plane !== 0) return
  const hasTokens = scopes.some(
    ({ policies }) => policies.jwtAuth ?? policies.mcpAuthentication ?? policies.oidc,
  )
  for (const scope of scopes) {
    context.cached(scope.policies, 'warnings of cors', () => warnAboutCors(scope, context))
    if (kind === 'llm')
      context.cached(scope.policies, 'warnings of paths', () => warnAboutPaths(scope, context))
    if (!hasTokens)
      context.cached(scope.policies, 'warnings of tokens', () => warnAboutTokens(scope, context))
  }
}

/** Warns about cookies for pages of every site (CWE-942). */
function warnAboutCors({ name: scope, policies: { cors } }: PolicyScope, { log }: CompileContext): boolean {
  if (cors?.allowCredentials === true && cors.allowOrigins?.includes('*') === true)
    log.warn(
      { place: scope, path: 'cors.allowOrigins' },
      'cors permits credentials for every origin: pages of every site can act for their users',
    )
  return true
}

/** Warns about comparisons of `request.path`, because LLM operations have many paths (`/x/v1/embeddings`). */
function warnAboutPaths({ name: scope, policies }: PolicyScope, { log }: CompileContext): boolean {
  policies.authorization?.rules.forEach((rule, index) => {
    const { kind, source } = ruleSource(rule)
    // An allow rule with `==` admits fewer paths than intended, never more.
    if (kind === 'allow' && !source.includes('!=')) return
    if (!comparesField(source, 'request', 'path')) return
    log.warn(
      { place: scope, rule: `${kind} rule ${index + 1}`, instead: 'llm.operation or llm.api' },
      'rule compares request.path: other paths lead to the same LLM operation',
    )
  })
  return true
}

function warnAboutTokens({ name: scope, policies }: PolicyScope, { log }: CompileContext): boolean {
  for (const { source, path } of expressionsOf(policies)) {
    if (!referencesVariable(source, 'jwt')) continue
    log.warn(
      { place: scope, path: formatPath(path) },
      'expression reads jwt without jwtAuth, oidc or mcpAuthentication: it never has a value',
    )
  }
  return true
}
