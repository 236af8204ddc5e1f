import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Content coding of a stored body. */
export type Coding = 'br' | 'gzip' | 'identity'

/** File of the console. */
export type Asset = {
  /** Media type. */
  readonly type: string
  /** SHA-256 of the content, shortened. */
  readonly digest: string
  /** The name contains a hash of the content. */
  readonly isImmutable: boolean
  /** Bodies by coding. The build compresses files; a development build does not. */
  readonly bodies: { readonly identity: Buffer } & { readonly [coding in Coding]?: Buffer | undefined }
}

export type AssetTable = {
  /** Files by path relative to the folder, with forward slashes, without the page. */
  readonly files: ReadonlyMap<string, Asset>
  /** `index.html`. Contains `noncePlaceholder`. */
  readonly page: string
}

/** Text in the page that each reply replaces by a new nonce. */
export const noncePlaceholder = '__CSP_NONCE__'

const pageName = 'index.html'
const digestLength = 22

const mediaTypes: ReadonlyMap<string, string> = new Map([
  ['.css', 'text/css; charset=utf-8'],
  ['.html', 'text/html; charset=utf-8'],
  ['.ico', 'image/x-icon'],
  ['.jpg', 'image/jpeg'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.json', 'application/json'],
  ['.map', 'application/json'],
  ['.mjs', 'text/javascript; charset=utf-8'],
  ['.png', 'image/png'],
  ['.svg', 'image/svg+xml'],
  ['.txt', 'text/plain; charset=utf-8'],
  ['.wasm', 'application/wasm'],
  ['.webmanifest', 'application/manifest+json'],
  ['.webp', 'image/webp'],
  ['.woff2', 'font/woff2'],
])

/** Suffixes of compressed copies. */
const copies = [
  { suffix: '.br', coding: 'br' },
  { suffix: '.gz', coding: 'gzip' },
] as const

/** Reads the files of the built console. Undefined if there is no build. */
export async function readAssets(folder: URL): Promise<AssetTable | undefined> {
  const names = await namesIn(folder)
  if (!names.includes(pageName)) return undefined
  const read = (name: string) => readFile(new URL(encodePath(name), folder))
  const known = new Set(names)
  const files = new Map<string, Asset>()
  for (const name of names) {
    if (name === pageName || copies.some(({ suffix }) => name.endsWith(suffix))) continue
    const identity = await read(name)
    const bodies: Record<string, Buffer> = {}
    for (const { suffix, coding } of copies) {
      if (known.has(name + suffix)) bodies[coding] = await read(name + suffix)
    }
    files.set(name, {
      type: mediaTypes.get(extname(name)) ?? 'application/octet-stream',
      digest: createHash('sha256').update(identity).digest('base64url').slice(0, digestLength),
      isImmutable: isHashed(name),
      bodies: { ...bodies, identity },
    })
  }
  return { files, page: (await read(pageName)).toString() }
}

async function namesIn(folder: URL): Promise<string[]> {
  try {
    const root = fileURLToPath(folder)
    const entries = await readdir(root, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

/** Files below `assets/` are named by the bundler: name, hyphen, hash. */
function isHashed(name: string): boolean {
  return /^assets\/.+-[\w-]{8,}\.\w+$/.test(name)
}

function encodePath(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/')
}
