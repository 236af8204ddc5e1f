import { chosenWorkloads, type Stage, workersOf } from '../measure/stage.ts'
import type { BenchOptions } from '../options.ts'
import { startNginx } from '../subjects/nginx.ts'
import { type Subject, startScript } from '../subjects/processes.ts'
import { startTollgate } from '../subjects/tollgate.ts'
import { httpPath, httpSections, httpWorkloads } from './workloads.ts'

const fewRoutes = 10
/** A number of routes that must not cost a request more than few. */
export const manyRoutes = 10_000

/** Plain HTTP through routes, without policies. */
export async function httpStage(options: BenchOptions): Promise<Stage> {
  const { placement, entry, nodeFlags: flags } = options
  const cpus = placement.gateway
  const { port: upstreamPort } = await startScript('http/upstream.ts', (port) => [String(port)], {
    cpus: placement.upstream,
  })
  const counts = new Map<Subject, number>()
  const routesOf = (subject: Subject) => counts.get(subject) ?? fewRoutes
  const start = async (count: number, nodeFlags: readonly string[]) => {
    const tollgate = await startTollgate({
      upstreamPort,
      nodeFlags,
      entry,
      cpus,
      workers: workersOf(options),
      sections: (port) => httpSections(port, upstreamPort, { count }),
    })
    counts.set(tollgate, count)
    return tollgate
  }
  return {
    workloads: chosenWorkloads(
      options,
      httpWorkloads((connection, subject) => httpPath(connection, routesOf(subject))),
    ),
    startRelay: (nodeFlags) =>
      startScript('http/relay.ts', (port) => [String(port), String(upstreamPort)], { nodeFlags, cpus }),
    startGateway: (nodeFlags = flags) => start(fewRoutes, nodeFlags),
    async startOthers() {
      const many = await start(manyRoutes, flags)
      many.name = `${manyRoutes} routes`
      const nginx = await startNginx(upstreamPort, cpus)
      return nginx === undefined ? [many] : [many, nginx]
    },
    peers: {
      name: 'http',
      upstreamPort,
      values: { routes: httpSections(0, upstreamPort, { count: fewRoutes }).routes },
    },
  }
}
