import { longestTimerMs, parseDuration } from '../../lib/duration.ts'
import { readSessionKey } from '../../lib/session-key.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { McpBackendConfig, McpConfig, TargetConfig } from './config.ts'
import { checkOpenApi } from './targets/openapi/openapi.ts'
import { checkSse } from './targets/sse.ts'
import { checkStdio } from './targets/stdio.ts'
import { checkStreamableHttp } from './targets/streamable-http/streamable-http.ts'
import { checkTargetPolicies } from './targets/upstream.ts'

const namePattern = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/
const maxNameLength = 253

/** Reports problems of the `mcp` section that its schema cannot express. */
export function checkMcp(config: McpConfig, report: ReportIssue): void {
  if (config.port !== undefined && config.gateways !== undefined) {
    report(['gateways'], 'port and gateways are mutually exclusive: remove one of them')
  }
  checkMcpBackend(config, report)
}

/** Reports problems of an `mcp` backend that its schema cannot express. */
export function checkMcpBackend(
  { targets, initializeTimeout }: Pick<McpBackendConfig, 'targets' | 'initializeTimeout'>,
  report: ReportIssue,
): void {
  if (initializeTimeout !== undefined) checkTimeLimit(initializeTimeout, ['initializeTimeout'], report)
  const seen = new Set<string>()
  for (const [index, target] of targets.entries()) {
    const { name } = target
    const path = ['targets', index]
    if (!namePattern.test(name) || name.length > maxNameLength) {
      report(
        [...path, 'name'],
        `must consist of lower-case letters, digits, "-" and "." ("_" and "+" separate it from tool names and URIs), got "${name}"`,
      )
    }
    if (seen.has(name)) report([...path, 'name'], `must be unique: another target is named "${name}"`)
    seen.add(name)
    checkTarget(target, (rest, message) => report([...path, ...rest], message))
  }
}

/** Reports an unusable `config.session.key`. */
export function checkSessionKey(key: string, report: ReportIssue): void {
  // The message must not contain the secret.
  if (readSessionKey(key) === undefined) report([], 'must be 64 hexadecimal digits (32 bytes)')
}

/** Reports a `config.mcp.sessionTtl` of zero. */
export function checkSessionTtl(text: string, report: ReportIssue): void {
  if (parseDuration(text) === 0) report([], 'must be greater than 0')
}

function checkTimeLimit(text: string, path: string[], report: ReportIssue): void {
  const limitMs = parseDuration(text)
  if (limitMs === 0) report(path, 'must be greater than 0')
  if (limitMs !== undefined && limitMs > longestTimerMs) report(path, 'must be at most 24d')
}

function checkTarget(target: TargetConfig, report: ReportIssue): void {
  const under =
    (key: string): ReportIssue =>
    (path, message) =>
      report([key, ...path], message)
  if (target.stdio !== undefined) checkStdio(target.stdio, under('stdio'))
  else if (target.mcp !== undefined) checkStreamableHttp(target.mcp, under('mcp'))
  else if (target.sse !== undefined) checkSse(target.sse, under('sse'))
  else if (target.openapi !== undefined) checkOpenApi(target.openapi, under('openapi'))
  if (target.policies === undefined) return
  if (target.stdio !== undefined) {
    report(['policies'], 'is not valid for stdio targets: set credentials in env')
  } else if ((target.mcp ?? target.sse ?? target.openapi)?.backend !== undefined) {
    report(['policies'], 'is not valid with a named backend: set the policies of the backend')
  } else {
    checkTargetPolicies(target.policies, under('policies'))
    if (target.policies.oauth !== undefined && target.mcp === undefined)
      report(['policies', 'oauth'], 'is only valid for mcp targets')
  }
}

/** Named backends of targets, with the path of each reference in the section. */
export function backendReferences({ targets }: Pick<McpBackendConfig, 'targets'>): BackendReference[] {
  return targets.flatMap((target, index) => {
    const { mcp, sse, openapi } = target
    const reference = (mcp ?? sse ?? openapi)?.backend
    if (reference === undefined) return []
    const kind = mcp === undefined ? (sse === undefined ? 'openapi' : 'sse') : 'mcp'
    return [{ reference, path: ['targets', index, kind, 'backend'] }]
  })
}

export type BackendReference = { reference: string; path: (string | number)[] }
