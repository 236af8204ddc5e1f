import type { Path } from '../../../schema/path.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import type { ResponseCacheConfig } from '../cache/config.ts'
import { entriesOf } from '../llm-backend.ts'
import type { LlmBackendConfig, LlmPolicyConfig } from './backend-config.ts'
import type { LlmConfig } from './config.ts'

type Policies = { readonly policies?: { readonly ai?: LlmPolicyConfig | undefined } | undefined }
type Backend = { readonly ai?: LlmBackendConfig | undefined }
type Route = Policies & { readonly backends?: readonly (Backend & Policies)[] | undefined }

/** Places of response caches in a configuration. */
export type CachePlaces = {
  readonly llm?: LlmConfig | undefined
  readonly backends: readonly Backend[]
  readonly routes: readonly Route[]
}

/** Reports caches with `store: database` in a configuration without a database. */
export function checkCacheStores({ llm, backends, routes }: CachePlaces, report: ReportIssue): void {
  const check = (cache: ResponseCacheConfig | undefined, path: Path) => {
    if (cache?.store !== 'database') return
    const message = 'database requires a database: set config.database.url or config.responseCache.url'
    report([...path, 'cache', 'store'], message)
  }
  const checkPolicies = ({ policies }: Policies, path: Path) =>
    check(policies?.ai?.cache, [...path, 'policies', 'ai'])
  const checkBackend = ({ ai }: Backend, path: Path) => {
    const entries = ai === undefined ? [] : entriesOf(ai)
    for (const { entry, path: at } of entries) checkPolicies(entry, [...path, 'ai', ...at])
  }
  for (const [index, { cache }] of llm?.models.entries() ?? []) check(cache, ['llm', 'models', index])
  for (const [index, backend] of backends.entries()) checkBackend(backend, ['backends', index])
  for (const [position, route] of routes.entries()) {
    checkPolicies(route, ['routes', position])
    for (const [index, backend] of route.backends?.entries() ?? []) {
      const path = ['routes', position, 'backends', index]
      checkPolicies(backend, path)
      checkBackend(backend, path)
    }
  }
}
