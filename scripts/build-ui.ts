import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

// `npm run ui`: builds the console into ui/dist, where a gateway that runs from the source reads it.

const root = fileURLToPath(new URL('..', import.meta.url))

/** Folder that a gateway in a checkout serves. */
export const checkoutFolder = join(root, 'ui/dist')

/** Sources of the console, and the versions of its packages. */
const sources = [
  'ui/src',
  'ui/public',
  'ui/index.html',
  'ui/package.json',
  'ui/vite.config.ts',
  'package-lock.json',
]

/** Smaller files gain nothing. */
const minCompressedBytes = 512

/** Content that is compressed already stays as it is. */
const compressible = /\.(?:css|html|js|json|map|svg|txt|webmanifest)$/

/** Whether a folder has a build that is newer than the sources. */
export function isCurrent(folder: string): boolean {
  const built = statSync(join(folder, 'index.html'), { throwIfNoEntry: false })
  return built !== undefined && sources.every((source) => newest(join(root, source)) <= built.mtimeMs)
}

function newest(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return 0
  if (!found.isDirectory()) return found.mtimeMs
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))))
}

/**
 * Builds the console into a folder, with compressed copies of its files. Returns the modules and style sheets
 * of packages that it consists of, relative to the root.
 */
export async function buildUi(folder: string): Promise<string[]> {
  // Loaded on demand: the bundler takes longer to load than a check of the times of files.
  const { build } = await import('vite')
  const modules = new Set<string>()
  rmSync(folder, { recursive: true, force: true })
  // Vite builds for development where the variable has another value, as in tests.
  const environment = process.env['NODE_ENV']
  process.env['NODE_ENV'] = 'production'
  await build({
    configFile: join(root, 'ui/vite.config.ts'),
    root: join(root, 'ui'),
    logLevel: 'warn',
    build: { outDir: folder, emptyOutDir: true },
    plugins: [
      {
        name: 'modules',
        generateBundle(_options, bundle) {
          for (const file of Object.values(bundle)) {
            if (file.type !== 'chunk') continue
            for (const [id, { renderedLength }] of Object.entries(file.modules))
              if (renderedLength > 0) modules.add(id)
          }
        },
      },
    ],
  })
  if (environment === undefined) delete process.env['NODE_ENV']
  else process.env['NODE_ENV'] = environment
  compress(folder)
  const files = [...modules].flatMap((id) => {
    const path = relative(root, id.replace(/\?.*$/, '')).replaceAll('\\', '/')
    return path.startsWith('node_modules/') ? [path] : []
  })
  return [...files, ...importedStyles()]
}

/** Style sheets of packages, which are inlined before they become modules. */
function importedStyles(): string[] {
  const folder = join(root, 'ui/src/styles')
  return readdirSync(folder)
    .flatMap((name) => [
      ...readFileSync(join(folder, name), 'utf8').matchAll(/@import ["']([^."'][^"']*)["']/g),
    ])
    .map(([, name = '']) => `node_modules/${name}/index.css`)
}

function compress(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    // The page differs in each reply.
    if (!entry.isFile() || entry.name === 'index.html' || !compressible.test(entry.name)) continue
    const content = readFileSync(path)
    if (content.length < minCompressedBytes) continue
    writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }))
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    }
    writeFileSync(`${path}.br`, brotliCompressSync(content, { params }))
  }
}

/** Builds the console for a gateway in the checkout, unless that build is current. */
export async function ensureUi(): Promise<void> {
  if (isCurrent(checkoutFolder)) return
  process.stderr.write('Building the console (once) ...\n')
  await buildUi(checkoutFolder)
}

if (import.meta.main) await ensureUi()
