import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { unavailable } from '../cloud/fetch-token.ts'
import type { AuthorizedRequest, Place } from '../placement.ts'
import { createTokenCache } from '../token-cache.ts'
import { readLogin } from './login.ts'

/** Period in which a new login takes effect. */
const lifetimeMs = 60_000

/** Adds the token of the login to GitHub Copilot. */
export type CopilotAuth = {
  readonly source: 'gateway'
  apply(request: AuthorizedRequest): Promise<void> | undefined
  refused(): void
}

/** Compiles `backendAuth.copilot`. Without a login, requests are denied (`credential_unavailable`). */
export function compileCopilotAuth({ place }: { place: Place }, context: CompileContext): CopilotAuth {
  const cache = context.retained('backends/copilot', () => createTokenCache(1, context.clock))
  const read = async () => {
    const token = readLogin(context)
    if (token === undefined)
      throw unavailable('no login of GitHub Copilot: set GH_COPILOT_TOKEN, or log in with an editor or gh')
    return { token, lifetimeMs }
  }
  return {
    source: 'gateway',
    apply(request) {
      const token = cache.get('', read)
      if (typeof token !== 'string') return token.then((found) => place(request, found))
      place(request, token)
      return undefined
    },
    refused: () => cache.refuse(''),
  }
}
