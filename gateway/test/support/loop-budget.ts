import { freePort } from './free-port.ts'
import { type Gateway, type GatewayConfig, type GatewayOptions, startGateway } from './gateway.ts'

/** Flags and environment that make a gateway measure its event loop. */
export async function loopProbe() {
  const port = await freePort()
  return {
    nodeFlags: ['--import', new URL('./loop-probe.ts', import.meta.url).href],
    env: { LOOP_PROBE_PORT: String(port) },
    /** Longest stretch of CPU time on the main thread during the work, in ms. */
    async during(work: () => Promise<unknown>): Promise<number> {
      await readProbe(port)
      await work()
      return readProbe(port)
    },
  }
}

/** A gateway that measures its event loop. */
export async function startMeasured(config: GatewayConfig, options: GatewayOptions = {}) {
  const { nodeFlags, env, during } = await loopProbe()
  const gateway: Gateway = await startGateway(config, {
    ...options,
    nodeFlags,
    env: { ...options.env, ...env },
  })
  return { gateway, during }
}

async function readProbe(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/`)
  return Number(await response.text())
}
