import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

// Enforces the import rules of ARCHITECTURE.md on the source: direction, owners of packages, no cycles, no
// barrels, no buckets. Paths are relative to gateway/src, with forward slashes.

/** Each row may import the rows before it, and itself only within one name. */
const layers = [
  ['lib'],
  ['net', 'cel', 'schema', 'process', 'database'],
  ['telemetry'],
  ['ledger'],
  ['pipeline'],
  ['upstream'],
  ['identity'],
  ['policies', 'backends'],
  ['config'],
  ['resources', 'kubernetes'],
  ['admin'],
  ['data-plane'],
  ['workers'],
  ['app'],
  ['main'],
]

/** The one file, or the one folder (with a slash at its end), that may import an external package. */
const owners: Record<string, string> = {
  '@bufbuild/cel': 'cel/',
  '@bufbuild/protobuf': 'policies/rate-limit/global/',
  'hash-wasm': 'policies/basic-auth/',
  jose: 'identity/jwt/',
  'openid-client': 'policies/oidc/',
  pg: 'database/postgres/client.ts',
  pino: 'telemetry/log.ts',
  'prom-client': 'telemetry/metrics/families.ts',
  re2js: 'lib/pattern.ts',
  undici: 'net/http-client/',
  yaml: 'config/yaml/yaml.ts',
  zod: 'schema/',
}

/** Packages that any test or benchmark may use. */
const testPackages = new Set(['vitest', 'fast-check', 'mitata', '@bufbuild/cel-spec', 'ws'])

/** Folders of gateway/test that tests beside the source may import. */
const testFolders = ['support', 'fixtures']

const bucketNames = new Set(['utils', 'util', 'helpers', 'helper', 'common', 'shared', 'misc', 'types'])

/** Source text by path. */
type Sources = Map<string, string>
type Import = { from: string; to: string }

function violations(sources: Sources): string[] {
  const imports = [...sources].flatMap(([path, text]) => importsOf(path, text))
  return [
    ...imports.flatMap(directionProblem),
    ...imports.flatMap(siblingProblem),
    ...imports.flatMap(ownerProblem),
    ...imports.flatMap((edge) => unresolvedProblem(sources, edge)),
    ...cycles(sources, imports),
    ...[...sources].flatMap(([path, text]) => barrelProblem(path, text)),
    ...[...sources.keys()].flatMap(bucketProblem),
  ]
}

const importPatterns = [
  /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/gm,
  /^\s*import\s*['"]([^'"]+)['"]/gm,
  /\bimport\(\s*['"]([^'"]+)['"]/g,
]

function importsOf(from: string, text: string): Import[] {
  return importPatterns
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map((match) => match[1] ?? '')
    .filter((specifier) => !specifier.startsWith('node:'))
    .map((specifier) => ({
      from,
      to: isRelative(specifier) ? posix.join(posix.dirname(from), specifier) : specifier,
    }))
    .map((edge) => (edge.to.startsWith('..') ? { ...edge, to: `outside ${edge.to}` } : edge))
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith('.')
}

function isInternal(path: string): boolean {
  return path.endsWith('.ts')
}

function isTest(path: string): boolean {
  return /\.(test|bench)\.ts$/.test(path)
}

function layerOf(path: string): { name: string; rank: number } {
  const name = path.split('/')[0]?.replace(/(\.(test|bench))?\.ts$/, '') ?? ''
  return { name, rank: layers.findIndex((layer) => layer.includes(name)) }
}

function directionProblem({ from, to }: Import): string[] {
  if (!isInternal(to)) return []
  const source = layerOf(from)
  const target = layerOf(to)
  if (source.rank < 0) return [`${from}: "${source.name}" is not in the table of layers`]
  if (source.name === target.name || target.rank < source.rank) return []
  return [`${from} imports ${to}: ${source.name} may not depend on ${target.name}`]
}

/**
 * Policies and backends meet in `exchange.facts`, never in an import; only the index that lists them sees
 * them all.
 */
function siblingProblem({ from, to }: Import): string[] {
  const source = unitOf(from)
  const target = unitOf(to)
  if (source === undefined || target === undefined || source.unit === 'registry') return []
  if (source.layer !== target.layer || source.unit === target.unit) return []
  return [`${from} imports ${to}: ${source.layer}/${source.unit} may not depend on its sibling`]
}

function unitOf(path: string): { layer: string; unit: string } | undefined {
  const [layer = '', unit = ''] = path.split('/')
  if (layer !== 'policies' && layer !== 'backends') return undefined
  return { layer, unit: unit.replace(/(\.(test|bench))?\.ts$/, '') }
}

function ownerProblem({ from, to }: Import): string[] {
  if (isInternal(to) || to.startsWith('outside ')) return []
  const name = to
    .split('/')
    .slice(0, to.startsWith('@') ? 2 : 1)
    .join('/')
  if (isTest(from) && testPackages.has(name)) return []
  const owner = Object.hasOwn(owners, name) ? owners[name] : undefined
  if (owner === undefined) return [`${from} imports ${name}: the package has no owner`]
  const isOwner = owner.endsWith('/') ? from.startsWith(owner) : from === owner
  return isOwner ? [] : [`${from} imports ${name}: only ${owner} may`]
}

/**
 * The only file outside the source that the source may import is the manifest, for the version. Tests may
 * import test folders.
 */
function unresolvedProblem(sources: Sources, { from, to }: Import): string[] {
  if (isTest(from) && testFolders.some((folder) => to.startsWith(`outside ../test/${folder}/`))) return []
  if (isInternal(to) && !to.startsWith('outside '))
    return sources.has(to) ? [] : [`${from} imports ${to}: no such file`]
  if (to.startsWith('outside ') && to !== 'outside ../package.json') return [`${from} imports ${to}`]
  return []
}

function cycles(sources: Sources, imports: Import[]): string[] {
  const targets = Map.groupBy(imports, (edge) => edge.from)
  const done = new Set<string>()
  const found: string[] = []
  const visit = (path: string, trail: string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) found.push(`cycle: ${[...trail.slice(start), path].join(' -> ')}`)
    if (start >= 0 || done.has(path)) return
    for (const { to } of targets.get(path) ?? []) if (sources.has(to)) visit(to, [...trail, path])
    done.add(path)
  }
  for (const path of sources.keys()) visit(path, [])
  return found
}

/** A barrel consists of re-exports only, which hide the origin of a name. */
function barrelProblem(path: string, text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
  const rest = code.replace(
    /^\s*export\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s*from\s*['"][^'"]+['"];?/gm,
    '',
  )
  return code.trim() !== '' && rest.trim() === '' ? [`${path} is a barrel`] : []
}

function bucketProblem(path: string): string[] {
  const bucket = path.split('/').find((part) => bucketNames.has(part.replace(/(\.(test|bench))?\.ts$/, '')))
  return bucket === undefined ? [] : [`${path}: "${bucket}" says nothing about what is in it`]
}

function readSources(): Sources {
  const folder = fileURLToPath(new URL('../src/', import.meta.url))
  const paths = globSync('**/*.ts', { cwd: folder }).map((path) => path.replaceAll('\\', '/'))
  return new Map(paths.map((path) => [path, readFileSync(folder + path, 'utf8')]))
}

function planted(files: Record<string, string>): string[] {
  return violations(new Map(Object.entries(files)))
}

describe('the source', () => {
  it('follows the import rules', () => {
    expect(violations(readSources())).toEqual([])
  })
})

describe('the import walker', () => {
  it('finds imports in every form', () => {
    const text = `import a from './a.ts'
import type { B } from './b.ts'
import {
  c,
} from "./c.ts"
import './d.ts'
export { e } from './e.ts'
const f = await import('./f.ts')
import { readFileSync } from 'node:fs'
import 'undici'`
    const found = importsOf('net/x.ts', text).map((edge) => edge.to)
    expect(found.sort()).toEqual([
      'net/a.ts',
      'net/b.ts',
      'net/c.ts',
      'net/d.ts',
      'net/e.ts',
      'net/f.ts',
      'undici',
    ])
  })

  it('accepts imports that follow the arrows', () => {
    const files = {
      'lib/a.ts': 'export const a = 1',
      'net/b.ts': "import { a } from '../lib/a.ts'\nexport const b = a",
    }
    expect(planted(files)).toEqual([])
  })

  it.each([
    [
      'an arrow that points back',
      { 'lib/a.ts': "import { b } from '../net/b.ts'\nf(b)", 'net/b.ts': 'f()' },
      'lib may not',
    ],
    [
      'two folders of one layer',
      { 'net/a.ts': "import '../schema/b.ts'\nf()", 'schema/b.ts': 'f()' },
      'net may not',
    ],
    [
      'a folder without a layer',
      { 'extra/a.ts': "import '../lib/b.ts'\nf()", 'lib/b.ts': 'f()' },
      'table of layers',
    ],
    [
      'policies that know each other',
      { 'policies/a.ts': "import './b/c.ts'\nf()", 'policies/b/c.ts': 'f()' },
      'may not depend on its sibling',
    ],
    ['a package outside its owner', { 'net/a.ts': "import { z } from 'zod'\nf(z)" }, 'only schema/ may'],
    [
      'a subpath of a package outside its owner',
      { 'net/a.ts': "import 'zod/mini'\nf()" },
      'only schema/ may',
    ],
    [
      'a package nobody owns',
      { 'net/a.ts': "import '@scope/thing/deep'\nf()" },
      '@scope/thing: the package has no owner',
    ],
    [
      'a test package in the source',
      { 'lib/a.ts': "import 'vitest'\nf()" },
      'vitest: the package has no owner',
    ],
    ['a file that is not there', { 'lib/a.ts': "import './b.ts'\nf()" }, 'no such file'],
    ['a way out of the source', { 'lib/a.ts': "import '../../test/x.ts'\nf()" }, 'outside'],
    [
      'a barrel',
      { 'lib/a.ts': "// all\nexport * from './b.ts'\n", 'lib/b.ts': 'f()' },
      'lib/a.ts is a barrel',
    ],
    ['a bucket', { 'lib/utils.ts': 'f()' }, 'says nothing'],
  ])('reports %s', (_, files, message) => {
    expect(planted(files)).toEqual([expect.stringContaining(message)])
  })

  it.each(testFolders)('accepts imports of test/%s from tests only', (folder) => {
    const text = `import { a } from '../../test/${folder}/a.ts'\nf(a)`
    expect(planted({ 'net/a.test.ts': text })).toEqual([])
    expect(planted({ 'net/a.ts': text })).toEqual([expect.stringContaining('outside')])
  })

  it('reports a cycle with its path', () => {
    const files = {
      'lib/a.ts': "import './b.ts'\nf()",
      'lib/b.ts': "import './c.ts'\nf()",
      'lib/c.ts': "import './b.ts'\nf()",
    }
    expect(planted(files)).toEqual(['cycle: lib/b.ts -> lib/c.ts -> lib/b.ts'])
  })

  it('lets the registry import every policy', () => {
    const files = { 'policies/registry/registry.ts': "import '../cors.ts'\nf()", 'policies/cors.ts': 'f()' }
    expect(planted(files)).toEqual([])
  })
})
