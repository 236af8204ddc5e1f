import type { JsonObject } from '../../../../lib/json/json.ts'
import type { Send } from '../../../../net/http-client/send.ts'
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

/** `sendAgain` is for messages that the server may receive more than once; `send` by default. */
type StreamableHttpContext = Pick<CompileContext, 'send'> & AddressContext & { readonly sendAgain?: Send }

/** Reports an invalid address. */
export function checkStreamableHttp(config: StreamableHttpConfig, report: ReportIssue): void {
  checkAddress(config, defaultPath, report)
}

/** Address of a target. */
export function compileMcpAddress(
  name: string,
  config: StreamableHttpConfig,
  context: AddressContext,
): TargetAddress {
  return compileAddress(name, config, defaultPath, context)
}

/** Target of the streamable HTTP transport (MCP 2025-11-25, Transports). */
export function compileStreamableHttp(
  name: string,
  config: StreamableHttpConfig,
  { send, sendAgain = send, ...addressContext }: StreamableHttpContext,
): Target {
  const address = compileMcpAddress(name, config, addressContext)
  const open = (state: SessionState) => createStreamableHttpSession({ name, address, send, sendAgain }, state)
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
