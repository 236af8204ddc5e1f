import type { JsonObject } from '../../../../lib/json/json.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { exactlyOne, type Infer } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import {
  type AddressContext,
  addressFields,
  addressVariants,
  checkAddress,
  compileAddress,
  type TargetAddress,
} from '../address.ts'
import type { Target } from '../target.ts'
import { createStreamableHttpSession, type SessionState } from './session.ts'

export const streamableHttpSchema = exactlyOne(addressVariants, addressFields, {
  doc: 'Server with MCP over HTTP ("streamable HTTP").',
})

export type StreamableHttpConfig = Infer<typeof streamableHttpSchema>

const defaultPath = '/mcp'

/** Reports an invalid address. */
export function checkStreamableHttp(config: StreamableHttpConfig, report: ReportIssue): void {
  checkAddress(config, defaultPath, report)
}

/** Target of the streamable HTTP transport (MCP 2025-11-25, Transports). */
export function compileStreamableHttp(
  name: string,
  config: StreamableHttpConfig,
  { send, ...addressContext }: Pick<CompileContext, 'send'> & AddressContext,
): Target {
  const address = compileAddress(name, config, defaultPath, addressContext)
  const open = (state: SessionState) => createStreamableHttpSession({ name, address, send }, state)
  return {
    name,
    sessionless: true,
    open: () => open({}),
    resume(state) {
      const sessionState = readState(state, address)
      return sessionState && open(sessionState)
    },
  }
}

/** State of another process is valid only for the same server. */
function readState(state: JsonObject, { origin, path }: TargetAddress): SessionState | undefined {
  const { s: session, v: version, a: address } = state
  if (address !== origin + path) return undefined
  return {
    ...(typeof session === 'string' ? { session } : undefined),
    ...(typeof version === 'string' ? { version } : undefined),
  }
}
