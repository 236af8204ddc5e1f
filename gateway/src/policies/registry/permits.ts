import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Facts } from '../../pipeline/exchange.ts'
import { compilePermission } from '../authorization.ts'
import { celVariablesOf } from './cel-variables.ts'
import type { PolicyScope } from './scope.ts'

/** Whether the `authorization` rules of all scopes permit a request that has not been sent. */
export type Permits = (facts: Facts) => Promise<boolean>

/** Compiles the rules of the scopes of a `ui` route. Rules that read a body do not permit: there is none. */
export function compilePermits(scopes: readonly PolicyScope[], context: CompileContext): Permits {
  const permissions = scopes.flatMap(({ policies: { authorization } }) =>
    authorization === undefined
      ? []
      : context.cached(authorization, 'permission', () =>
          compilePermission(authorization, context, celVariablesOf('ui')),
        ),
  )
  return async (facts) => {
    for (const permits of permissions) if (!(await permits(facts))) return false
    return true
  }
}
