import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isTest, readSources, type Sources } from './sources.ts'

// Rules of ui/src: small folders and files, imports in one direction, the documented API alone, and untrusted
// text as text.

const maxFilesPerFolder = 16
const maxLines = 400

/** Rooms in import order: a room imports itself and the rooms before it. */
const rooms = [
  'format',
  'styles',
  'api',
  'components',
  'charts',
  'editors',
  'schema-form',
  'save',
  'pages',
  'app',
]

/** Modules of `app` without dependencies of their own, which other rooms may import. */
const shared = new Set(['app/csp-nonce.ts', 'app/theme.ts', 'app/page-route.ts', 'app/navigation.ts'])

const forbidden: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/dangerouslySetInnerHTML|\.(?:inner|outer)HTML\b|insertAdjacentHTML|document\.write/, 'markup from text'],
  [/\beval\(|new Function\(/, 'code from text'],
  [
    /https?:\/\/(?!127\.0\.0\.1|localhost|[\w.-]*example\.)[\w.-]+\/[^\s'"`]*\.(?:js|css|woff2?)\b/,
    'a file of another server',
  ],
]

function violations(sources: Sources): string[] {
  const paths = [...sources.keys()]
  return [
    ...[...Map.groupBy(paths, (path) => posix.dirname(path))].flatMap(([folder, { length }]) =>
      length > maxFilesPerFolder ? [`${folder}/ has ${length} files`] : [],
    ),
    ...[...sources].flatMap(([path, text]) => [
      ...lengthProblem(path, text),
      ...forbidden.flatMap(([pattern, reason]) => (pattern.test(text) ? [`${path} creates ${reason}`] : [])),
      ...importsOf(text).flatMap((target) => importProblem(path, target)),
    ]),
  ]
}

function lengthProblem(path: string, text: string): string[] {
  const lines = text.split('\n').length - 1
  return isTest(path) || lines <= maxLines ? [] : [`${path} has ${lines} lines, at most ${maxLines}`]
}

function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, target = '']) => target)
}

function importProblem(path: string, target: string): string[] {
  const resolved = posix.join(posix.dirname(path), target)
  if (resolved.startsWith('..')) return isTest(path) ? [] : [`${path} imports ${resolved}, outside ui/src`]
  if (shared.has(resolved) || isTest(path)) return []
  const from = rooms.indexOf(roomOf(path))
  const to = rooms.indexOf(roomOf(resolved))
  if (roomOf(path) === 'main.tsx' || (from !== -1 && to !== -1 && to <= from)) return []
  return [`${path} imports ${resolved}`]
}

function roomOf(path: string): string {
  return path.split('/')[0] ?? ''
}

describe('the source of the console', () => {
  it('follows its rules', () => {
    const sources = readSources('ui/src', '**/*.{ts,tsx}')
    expect(sources.size).toBeGreaterThan(20)
    expect(violations(sources)).toEqual([])
  })

  it('is found to break them', () => {
    const planted = new Map([
      ['pages/a.tsx', '<p dangerouslySetInnerHTML={x} />'],
      ['api/b.ts', "import { a } from '../pages/a.tsx'"],
      ['api/c.ts', "import { a } from '../../../gateway/src/main.ts'"],
      ['api/d.ts', '\n'.repeat(500)],
    ])
    expect(violations(planted)).toEqual([
      'pages/a.tsx creates markup from text',
      'api/b.ts imports pages/a.tsx',
      'api/c.ts imports ../../gateway/src/main.ts, outside ui/src',
      'api/d.ts has 500 lines, at most 400',
    ])
  })
})
