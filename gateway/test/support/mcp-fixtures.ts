import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'
import { type Gateway, type GatewayConfig, type GatewayOptions, startGateway } from './gateway.ts'

const program = fileURLToPath(new URL('./mcp-program.mjs', import.meta.url))

/** A target that runs `mcp-program.mjs` with these flags; its name is the server name it reports. */
export function programTarget(name: string, ...flags: string[]) {
  return { name, stdio: { cmd: process.execPath, args: [program, '--name', name, ...flags] } }
}

/** The conformance target, on the official SDK, as a program. */
export function sdkTarget(name: string) {
  const main = fileURLToPath(new URL('../conformance/target/main.ts', import.meta.url))
  return { name, stdio: { cmd: process.execPath, args: [main, 'stdio'] } }
}

/** A gateway with an MCP section that contains its own URL, as `resource` and `aud` require. */
export async function startMcpGateway(
  section: (url: string) => Record<string, unknown> | Promise<Record<string, unknown>>,
  options: GatewayOptions & { config?: GatewayConfig['config'] } = {},
): Promise<Gateway> {
  const mcpPort = await freePort()
  const mcp = await section(`http://127.0.0.1:${mcpPort}/mcp`)
  return startGateway({ mcp, ...(options.config && { config: options.config }) }, { ...options, mcpPort })
}
