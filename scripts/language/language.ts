import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { allowed, type Count, count, type Finding, limits } from './count.ts'
import { readMarkdown, readYamlComments } from './document-texts.ts'
import { readSourceTexts } from './source-texts.ts'
import type { Text } from './text.ts'

// `npm run check language`: limits vague words in comments, documents, messages and test names, and the width
// of comment lines. `node scripts/language/language.ts PATH...` reports every finding in some files or
// folders.

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(root + path, 'utf8').replaceAll('\r\n', '\n')
const lineWidth: number = JSON.parse(read('biome.json')).formatter.lineWidth
/** Findings shown of a group above its limits, unless paths are named. */
const maxShown = 20

const named = process.argv.slice(2)
const groups = new Map<string, Text[]>()
const wide: string[] = []

for (const path of listFiles()) {
  if (named.length > 0 && !named.some((prefix) => path.startsWith(prefix))) continue
  if (/^(gateway\/(src|test|bench)|scripts|examples)\/.*\.(ts|mjs)$/.test(path)) addSource(path)
  else if (/^([^/]+|(docs(?!\/reference\/)|examples)\/.*)\.md$/.test(path))
    add('documents', readMarkdown(path, read(path)))
  else if (/^examples\/.*\.ya?ml$/.test(path)) add('documents', readYamlComments(path, read(path)))
}

for (const [group, texts] of groups) report(group, count(texts))
if (wide.length > 0) {
  print(`\n${wide.length} comment lines are longer than ${lineWidth} columns:`)
  printSome(wide)
  process.exitCode = 1
}

function addSource(path: string): void {
  const { comments, messages, testNames, wideComments } = readSourceTexts(path, read(path), lineWidth)
  add('comments', comments)
  const folder = /^gateway\/src\/([^/]+)\//.exec(path)?.[1]
  if (folder !== undefined) add(`comments of gateway/src/${folder}`, comments)
  if (path.startsWith('gateway/src/') && !/\.(test|bench)\.ts$/.test(path)) add('messages', messages)
  if (path.endsWith('.test.ts')) add('test names', testNames)
  wide.push(...wideComments.map((line) => `${path}:${line}`))
}

function add(group: string, texts: readonly Text[]): void {
  const known = groups.get(group)
  if (known) known.push(...texts)
  else groups.set(group, [...texts])
}

/** Prints the figures of a group, and its findings where they exceed a limit. */
function report(group: string, { words, findings }: Count): void {
  const figures = limits.map(({ words: [word], perThousand }, row) => {
    const found = findings[row]?.length ?? 0
    const rate = words === 0 ? 0 : (found * 1000) / words
    return { word, found, isExceeded: found > allowed(words, perThousand), rate, perThousand }
  })
  const texts = figures.map(
    ({ word, found, rate, perThousand, isExceeded }) =>
      `"${word}" ${found} = ${rate.toFixed(1)}, limit ${perThousand}${isExceeded ? ' EXCEEDED' : ''}`,
  )
  print(`${group}: ${words} words; per 1,000: ${texts.join('; ')}`)
  if (figures.some(({ isExceeded }) => isExceeded)) process.exitCode = 1
  const shown = findings.filter((_, row) => figures[row]?.isExceeded || named.length > 0).flat()
  // The comments of a folder are listed once, with all comments.
  if (shown.length > 0 && (named.length === 0 || !group.startsWith('comments of'))) printFindings(shown)
}

/** Files with most findings first. */
function printFindings(findings: readonly Finding[]): void {
  const byPath = [...Map.groupBy(findings, ({ path }) => path).values()]
  const sorted = byPath.sort((one, other) => other.length - one.length)
  printSome(sorted.flat().map(({ path, line, word, sentence }) => `${path}:${line}: ${word}: ${sentence}`))
}

function printSome(lines: readonly string[]): void {
  const shown = named.length > 0 ? lines : lines.slice(0, maxShown)
  for (const line of shown) print(`  ${line}`)
  const hidden = lines.length - shown.length
  if (hidden > 0)
    print(`  and ${hidden} more: node scripts/language/language.ts PATH lists all of a file or folder`)
}

function listFiles(): string[] {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate']
  const listed = execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\0')
  const deleted = execFileSync('git', ['ls-files', '-z', '--deleted'], { cwd: root, encoding: 'utf8' }).split(
    '\0',
  )
  return listed.filter((path) => path !== '' && !deleted.includes(path)).sort()
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
