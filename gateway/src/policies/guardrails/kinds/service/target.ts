import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { exactlyOne, hostPort, name } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import { checkBackendHost } from '../../../../upstream/check.ts'
import { findBackend, hasServers, type NamedBackend } from '../../../../upstream/config.ts'
import { compileDestination, missingBackend } from '../../../../upstream/destination.ts'
import { type CallServers, compileNamedServers, singleServer } from '../../../../upstream/endpoints.ts'

/** Schema of a server of guards: an address, or a named backend. */
export const targetSchema = ({ doc, example }: { doc: string; example: string }) =>
  exactlyOne(
    {
      host: hostPort({ doc: 'Host and port of the server, called without TLS.', example }),
      backend: name({
        doc: 'Named backend, as `/<name>`, for TLS, credentials or another timeout.',
        example: '/guard',
      }),
    },
    {},
    { doc },
  )

export type TargetConfig =
  | { readonly host: string; readonly backend?: undefined }
  | { readonly backend: string; readonly host?: undefined }

/** Reports an address that cannot be connected to, or a backend without servers. */
export function checkTarget(
  target: TargetConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  if (target.host !== undefined) checkBackendHost(target.host, (message) => report(['host'], message))
  else {
    const found = findBackend(target.backend, backends)
    if (found === undefined || !hasServers(found)) report(['backend'], missingBackend(target.backend, found))
  }
}

/** Compiles the servers of a target. Throws on errors that `checkTarget` reports. */
export function compileTarget(
  target: TargetConfig,
  backends: readonly NamedBackend[],
  context: CompileContext,
): CallServers {
  return target.host === undefined
    ? compileNamedServers(target.backend, backends, context)
    : singleServer(compileDestination({ host: target.host, node: target, policies: [] }, context))
}
