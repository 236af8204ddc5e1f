import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

// Properties of the repository: a complete index of examples, working links, no traces of one machine.

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const list = ['ls-files', '--cached', '--others', '--exclude-standard']
const files = execFileSync('git', list, { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(root, path)))
const texts = files.filter((path) => /\.(ts|mjs|js|json|md|ya?ml|sh)$|(^|\/)\.?[a-z]+(\/run)?$/i.test(path))

describe('examples', () => {
  const examples = globSync('examples/*.yaml', { cwd: root }).sort()

  it.each(examples)('%s names a schema that editors find', (example) => {
    const schema = /^# yaml-language-server: \$schema=(\S+)\n/.exec(read(example))?.[1] ?? 'none'
    expect(JSON.parse(read(join('examples', schema)))).toHaveProperty('$schema')
  })

  it('names every example in the list of examples', () => {
    const readme = read('examples/README.md')
    for (const example of examples) expect(readme).toContain(example.replace('examples/', ''))
  })
})

describe('the guarantees of SECURITY.md', () => {
  const cells = [...read('SECURITY.md').matchAll(/^\|.*\|$/gm)].flatMap(([row]) =>
    [...row.matchAll(/`([\w./*-]+)`/g)].map(([, name = '']) => name),
  )

  it('name tests that exist', () => {
    const names = cells.filter((name) => /^(security|e2e)\//.test(name) || name.endsWith('.test.ts'))
    const exists = (name: string) =>
      name.endsWith('.test.ts')
        ? globSync(`gateway/src/**/${name}`, { cwd: root }).length > 0
        : existsSync(join(root, 'gateway/test', `${name}.test.ts`))
    expect(names.length).toBeGreaterThan(40)
    expect(names.filter((name) => !exists(name))).toEqual([])
  })
})

describe('documents', () => {
  const documents = files.filter((path) => path.endsWith('.md'))
  /** A file or folder of the repository, of gateway/src or of gateway/test. */
  const sourcePath = /^[a-z0-9-]+(\/[\w.*-]+)*(\/|\/[\w*-]+\.m?ts)$/
  const folders = [
    '',
    'gateway/src/',
    'gateway/test/',
    'gateway/src/**/',
    'ui/src/',
    'ui/src/components/',
    'ui/src/app/',
  ]
  const isPresent = (pattern: string) => globSync(pattern, { cwd: root }).length > 0

  it('link only to files that exist', () => {
    const broken = documents.flatMap((path) =>
      localLinks(read(path))
        .filter((target) => !existsSync(join(root, dirname(path), target)))
        .map((target) => `${path} -> ${target}`),
    )
    expect(broken).toEqual([])
  })

  it.each([
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    ...globSync('docs/decisions/*.md', { cwd: root }),
  ])('%s names source files and folders that exist', (document) => {
    const names = [...read(document).matchAll(/`([\w./*-]+)`/g)].map(([, name = '']) => name)
    const sources = names.filter((name) => sourcePath.test(name) && !/\.test\.ts$|^x\/|^dist\/$/.test(name))
    expect(sources.filter((name) => !folders.some((folder) => isPresent(folder + name)))).toEqual([])
  })

  it('are all in the index of the documentation', () => {
    const index = localLinks(read('docs/README.md'))
    const pages = globSync(['docs/*.md', 'docs/reference/*.md'], { cwd: root }).map((path) =>
      relative('docs', path),
    )
    expect(pages.filter((page) => page !== 'README.md' && !index.includes(page))).toEqual([])
    const decisions = localLinks(read('docs/decisions/README.md'))
    const numbered = globSync('[0-9]*.md', { cwd: join(root, 'docs/decisions') })
    expect(decisions.sort()).toEqual(numbered.sort())
  })

  it('give a reason for every dependency', () => {
    const decisions = globSync('docs/decisions/*.md', { cwd: root }).map(read).join('\n')
    const missing = dependencies().filter((name) => !decisions.includes(`\`${name}\``))
    expect(missing).toEqual([])
  })
})

describe('badges of the README', () => {
  const badge = (name: string) => read(`docs/images/badge-${name}.svg`).replaceAll('&gt;', '>')
  const { license, engines } = JSON.parse(read('gateway/package.json'))

  it.each(['license', 'node', 'mcp'])('include %s', (name) => {
    expect(read('README.md')).toContain(`(docs/images/badge-${name}.svg)`)
  })

  it('agree with the package and the conformance table', () => {
    expect(badge('license')).toContain(`>${license}<`)
    expect(badge('node')).toContain(`>${engines.node}<`)
    const revision = /protocol revision\s+([\d-]+)/.exec(read('docs/mcp-conformance.md'))?.[1]
    expect(badge('mcp')).toContain(`>${revision}<`)
  })
})

describe('scripts', () => {
  it('are all tasks that the runner knows', () => {
    const { scripts } = JSON.parse(read('package.json'))
    const runner = read('scripts/run.mjs')
    for (const [name, command] of Object.entries(scripts)) {
      expect(command).toBe(`node scripts/run.mjs ${name}`)
      expect(runner).toMatch(new RegExp(`^  ${name}: \\[`, 'm'))
    }
  })
})

describe('texts', () => {
  // Written in pieces, so that this file does not find itself.
  const forbidden: [string, RegExp][] = [
    [
      'a host of a package registry',
      new RegExp(`\\b(${['registry', 'npm'].join('\\.')}|npm${'js'}\\.(org|com)|${'verd'}accio)`),
    ],
    [
      'a path of one machine',
      new RegExp(`(?<![\\w.~}/])/(${['work', 'root', 'home', 'Users'].join('|')})/\\w`),
    ],
    [
      'a task without an owner',
      new RegExp(`\\b(${['TO', 'DO'].join('')}|${['FIX', 'ME'].join('')})\\b(?!\\(\\w+\\))`),
    ],
  ]

  it.each(forbidden)('contain no %s', (_, pattern) => {
    const found = texts.flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line, index) =>
          pattern.test(line) ? [`${path}:${index + 1}: ${line.trim().slice(0, 100)}`] : [],
        ),
    )
    expect(found).toEqual([])
  })

  it('have working links', () => {
    const samples = [`https://registry.${'npm'}js.org/x`, `see /${'work'}/main/x`, `// ${'TO'}DO: later`]
    expect(samples.map((sample, index) => forbidden[index]?.[1].test(sample))).toEqual([true, true, true])
  })
})

function localLinks(markdown: string): string[] {
  return [...markdown.replace(/```[\s\S]*?```/g, '').matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => (match[1] ?? '').split('#')[0] ?? '')
    .filter((target) => target !== '' && !/^[a-z]+:/.test(target))
}

function dependencies(): string[] {
  return ['package.json', 'gateway/package.json', 'ui/package.json'].flatMap((path) => {
    const manifest = JSON.parse(read(path))
    return Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })
  })
}
