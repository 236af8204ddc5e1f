import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isTest, readSources, type Sources } from './sources.ts'

// Layout of gateway/src: `x/x.ts` is the entry of the folder `x/`, folders are small, fixtures are elsewhere.

const maxFilesPerFolder = 16
const maxLines = 400

/** Files above the line limit, with the reason. */
const longFiles: Record<string, string> = {}

/**
 * Violations in the source; `others` are texts outside gateway/src that may use it, with paths relative to
 * gateway/src.
 */
function violations(sources: Sources, others: Sources = new Map()): string[] {
  const paths = [...sources.keys()]
  return [
    ...paths.flatMap((path) => entryProblem(path, paths)),
    ...folderProblems(paths),
    ...[...sources].flatMap(([path, text]) => lengthProblem(path, text)),
    ...Object.keys(longFiles).flatMap((path) => (sources.has(path) ? [] : staleProblem(path))),
    ...fixtureProblems(sources, others),
  ]
}

function entryProblem(path: string, paths: readonly string[]): string[] {
  const folder = `${path.slice(0, -posix.extname(path).length)}/`
  if (posix.basename(path) === 'index.ts') {
    const { dir } = posix.parse(path)
    return [`${path}: the entry of a folder is ${posix.join(dir, `${posix.basename(dir)}.ts`)}`]
  }
  if (!paths.some((other) => other.startsWith(folder))) return []
  return [`${path} is beside the folder ${folder}: its entry is ${folder}${posix.basename(path)}`]
}

function folderProblems(paths: readonly string[]): string[] {
  const folders = Map.groupBy(
    paths.filter((path) => !isTest(path)),
    (path) => posix.dirname(path),
  )
  return [...folders].flatMap(([folder, { length }]) =>
    length > maxFilesPerFolder ? [`${folder}/ has ${length} files, at most ${maxFilesPerFolder}`] : [],
  )
}

function lengthProblem(path: string, text: string): string[] {
  const lines = text.split('\n').length - 1
  if (isTest(path)) return []
  if (Object.hasOwn(longFiles, path)) return lines > maxLines ? [] : staleProblem(path)
  return lines > maxLines ? [`${path} has ${lines} lines, at most ${maxLines}`] : []
}

function staleProblem(path: string): string[] {
  return [`${path} is listed as a long file and is not one`]
}

/** Fixtures are data files, folders and files with the name, and modules that only tests import. */
function fixtureProblems(sources: Sources, others: Sources): string[] {
  const users = [...sources, ...others].flatMap(([from, text]) =>
    targets(from, text).map((to) => ({ to, isTest: isTest(from) })),
  )
  const byTarget = Map.groupBy(users, ({ to }) => to)
  return [...sources.keys()].flatMap((path) => {
    const isNamed = /(^|\/|\.|-)(fixtures?|test-?data|mocks?|fakes?)(\/|\.|-|$)/.test(path)
    if (isNamed || !path.endsWith('.ts')) return [`${path} is a fixture: move it to gateway/test/support`]
    const uses = byTarget.get(path) ?? []
    if (isTest(path) || uses.length === 0 || uses.some((use) => !use.isTest)) return []
    return [`${path} is imported by tests only: move it to gateway/test/support`]
  })
}

/** Files that a text imports or names in a URL. */
function targets(from: string, text: string): string[] {
  const pattern = /(?:\bfrom|\bimport|\bimport\(|\bURL\()\s*['"](\.[^'"]+)['"]/g
  const folder = posix.join('gateway/src', posix.dirname(from))
  return [...text.matchAll(pattern)].map(([, target = '']) =>
    posix.join(folder, target).replace(/^gateway\/src\//, ''),
  )
}

function planted(files: Record<string, string>, others: Record<string, string> = {}): string[] {
  return violations(new Map(Object.entries(files)), new Map(Object.entries(others)))
}

/** Texts of programs that use the source, with paths relative to gateway/src. */
function programs(): Sources {
  const moved = (folder: string, prefix: string): [string, string][] =>
    [...readSources(folder)].map(([path, text]) => [prefix + path, text])
  return new Map([...moved('scripts', '../../scripts/'), ...moved('gateway/bench', '../bench/')])
}

describe('the layout of the source', () => {
  it('follows the rules', () => {
    expect(violations(readSources('gateway/src', '**/*.*'), programs())).toEqual([])
  })
})

describe('the layout rules', () => {
  const files = (count: number, name: (index: number) => string) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), '']))
  const lines = (count: number) => 'f()\n'.repeat(count)

  it.each([
    ['an entry with the name of its folder', { 'a/a.ts': '', 'a/b.ts': '' }],
    ['16 files and their tests', { ...files(16, (n) => `a/${n}.ts`), ...files(9, (n) => `a/${n}.test.ts`) }],
    ['a file of 400 lines', { 'a/b.ts': lines(400) }],
    ['a test of 401 lines', { 'a/b.test.ts': lines(401) }],
    [
      'a file that a test and a file import',
      { 'a.test.ts': "import './c.ts'", 'b.ts': "import './c.ts'", 'c.ts': '' },
    ],
    [
      'a thread that a test imports',
      { 'a.test.ts': "import './c.ts'", 'b.ts': "new URL('./c.ts', x)", 'c.ts': '' },
    ],
  ])('accept %s', (_, planting) => {
    expect(planted(planting)).toEqual([])
  })

  it('accept a file that a test and a script import', () => {
    const sources = { 'a/b.ts': '', 'a/b.test.ts': "import { b } from './b.ts'" }
    expect(planted(sources, { '../../scripts/c.ts': "import { b } from '../gateway/src/a/b.ts'" })).toEqual(
      [],
    )
  })

  it.each([
    ['an index', { 'a/b/index.ts': '' }, 'a/b/index.ts: the entry of a folder is a/b/b.ts'],
    ['a file beside its folder', { 'a/b.ts': '', 'a/b/c.ts': '' }, 'its entry is a/b/b.ts'],
    ['17 files in a folder', files(17, (n) => `a/${n}.ts`), 'a/ has 17 files, at most 16'],
    ['a file of 401 lines', { 'a/b.ts': lines(401) }, 'a/b.ts has 401 lines, at most 400'],
    ['a folder of fixtures', { 'a/fixtures/b.ts': '' }, 'is a fixture'],
    ['a file of fixtures', { 'a/b-fixture.ts': '' }, 'is a fixture'],
    ['a data file', { 'a/b.json': '' }, 'is a fixture'],
    [
      'a file for tests only',
      { 'a/b.ts': '', 'a/c.test.ts': "import './b.ts'" },
      'is imported by tests only',
    ],
  ])('report %s', (_, planting, message) => {
    expect(planted(planting)).toEqual([expect.stringContaining(message)])
  })
})
