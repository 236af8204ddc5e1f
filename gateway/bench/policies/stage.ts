import { httpPath, httpSections, httpWorkloads } from '../http/workloads.ts'
import { chosenWorkloads, type Stage, workersOf } from '../measure/stage.ts'
import type { BenchOptions } from '../options.ts'
import { startScript } from '../subjects/processes.ts'
import { startTollgate } from '../subjects/tollgate.ts'

const routes = 10

/** CPU of a GET without policies, and 1.6 times the relay for a call over gRPC. */
const target = 1.3 + 1.6

/** Plain HTTP behind services that permit every request at once, and behind a condition. */
export async function policyStage(options: BenchOptions): Promise<Stage> {
  const { placement, entry, nodeFlags: flags } = options
  const start = (script: string, args: readonly string[] = []) =>
    startScript(script, (port) => [String(port), ...args], { cpus: placement.upstream })
  const upstream = await start('http/upstream.ts')
  const grpc = `127.0.0.1:${(await start('policies/service.ts')).port}`
  const http = `127.0.0.1:${(await start('llm/guard-webhook.ts')).port}`
  const tollgateWith = async (name: string, policies: object, nodeFlags: readonly string[]) => {
    const tollgate = await startTollgate({
      upstreamPort: upstream.port,
      nodeFlags,
      entry,
      cpus: placement.gateway,
      workers: workersOf(options),
      sections(port) {
        const sections = httpSections(port, upstream.port, { count: routes })
        return { ...sections, gateways: { default: { port, ...policies } } }
      },
    })
    return { ...tollgate, name }
  }
  const others = {
    'no policy': {},
    'extAuthz HTTP': { extAuthz: { host: http, protocol: { http: {} } } },
    'extAuthz cached': { extAuthz: { host: grpc, cache: { key: ['request.path'], ttl: '1h' } } },
    extProc: { extProc: { host: grpc, processingOptions: headersOnly } },
    condition: {
      transformations: {
        conditional: [{ condition: 'request.method == "PUT"', request: { remove: ['x-a'] } }],
      },
    },
  }
  const [get] = httpWorkloads((connection) => httpPath(connection, routes))
  const workload =
    get && ({ ...get, name: 'policies', title: 'plain HTTP, GET behind extAuthz over gRPC', target } as const)
  return {
    workloads: chosenWorkloads(options, workload === undefined ? [] : [workload]),
    startRelay: (nodeFlags) =>
      startScript('http/relay.ts', (port) => [String(port), String(upstream.port)], {
        nodeFlags,
        cpus: placement.gateway,
      }),
    startGateway: (nodeFlags = flags) =>
      tollgateWith('extAuthz gRPC', { extAuthz: { host: grpc } }, nodeFlags),
    async startOthers() {
      const started = []
      for (const [name, policies] of Object.entries(others))
        started.push(await tollgateWith(name, policies, flags))
      return started
    },
  }
}

const headersOnly = { requestBodyMode: 'none', responseBodyMode: 'none' }
