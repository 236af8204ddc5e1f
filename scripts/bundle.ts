import { rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { join } from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import { configJsonSchema } from '../gateway/src/config/schema.ts'

/**
 * Bundles the gateway with its libraries into a folder, relative to the root: one file per entry point, and
 * the JSON Schema of the configuration.
 */
export async function bundleGateway(outdir: string): Promise<Metafile> {
  rmSync(outdir, { recursive: true, force: true })
  const { metafile } = await build({
    // Threads with little code have bundles of their own, which load faster than that of the gateway.
    entryPoints: {
      tollgate: 'gateway/src/main.ts',
      'sqlite-thread': 'gateway/src/resources/stores/sqlite/thread.ts',
      'ledger-writer': 'gateway/src/ledger/writer/thread.ts',
      'lease-thread': 'gateway/src/policies/rate-limit/leases/lease-thread.ts',
      'record-thread': 'gateway/src/backends/llm/lists/record-thread.ts',
      'cache-thread': 'gateway/src/backends/llm/cache/database/cache-thread.ts',
      'config-worker': 'gateway/src/app/config-worker.ts',
      'data-plane': 'gateway/src/workers/thread.ts',
      'ledger-queries': 'gateway/src/ledger/query/thread.ts',
    },
    outdir,
    bundle: true,
    // Code of several entry points exists once; a chunk is loaded with the first of them.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24.15',
    // Each thread has the text of its code in memory. Short lines preserve the use of stack traces.
    minifyWhitespace: true,
    lineLimit: 120,
    sourcemap: true,
    // Stack traces need names and lines only; copies of all sources would double the package.
    sourcesContent: false,
    metafile: true,
    plugins: [httpWithoutClients],
    logLevel: 'warning',
    // Libraries in CommonJS load Node's own modules with require, which is not defined in an ES module.
    banner: {
      js: "import { createRequire as nodeRequire } from 'node:module'\nconst require = nodeRequire(import.meta.url)",
    },
  })
  writeFileSync(join(outdir, 'config.schema.json'), JSON.stringify(configJsonSchema()))
  return metafile
}

/**
 * Reads the members of `node:http` that are plain values. An import of the module also reads its getters,
 * which load a WebSocket client: a twentieth of a start.
 */
const httpWithoutClients: Plugin = {
  name: 'http without clients',
  setup({ onResolve, onLoad }) {
    const namespace = 'http without clients'
    onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'node:http', namespace } : undefined,
    )
    onLoad({ filter: /./, namespace }, () => {
      const descriptors = Object.entries(Object.getOwnPropertyDescriptors(http))
      const names = descriptors.flatMap(([name, { get }]) => (get === undefined ? [name] : []))
      const contents = `const http = process.getBuiltinModule('node:http')
export default http
export const { ${names.join(', ')} } = http`
      return { contents }
    })
  },
}
