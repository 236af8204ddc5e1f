import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

function tollgate(...args: string[]) {
  const command = [join(root, 'gateway/bin/tollgate.mjs'), ...args]
  const { stdout, stderr, status } = spawnSync(process.execPath, command, {
    encoding: 'utf8',
    maxBuffer: 8 * 1024 * 1024,
    timeout: 20_000,
  })
  return { stdout, stderr, status }
}

describe('the command line', () => {
  it.each(['--version', '-V'])('%s prints the version of the package', (option) => {
    const { version } = JSON.parse(readFileSync(join(root, 'gateway/package.json'), 'utf8'))
    expect(tollgate(option)).toEqual({ stdout: `tollgate ${version}\n`, stderr: '', status: 0 })
  })

  it.each(['--help', '-h'])('%s names every option', (option) => {
    const { stdout, stderr, status } = tollgate(option)
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
    for (const name of ['-f, --file', '--validate-only', '-V, --version', '-h, --help', 'tollgate schema'])
      expect(stdout).toContain(name)
  })

  it('schema prints the schema of the documentation', () => {
    const { stdout, status } = tollgate('schema')
    expect(status).toBe(0)
    const documented = readFileSync(join(root, 'docs/reference/config.schema.json'), 'utf8')
    expect(JSON.parse(stdout)).toEqual(JSON.parse(documented))
  })

  it('--validate-only prints warnings about rules that cannot do their work', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-warnings-'))
    endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'config.yaml')
    const rules = [{ deny: 'request.path == "/v1/embeddings"' }, { deny: 'jwt.sub == "x"' }]
    const llm = { models: [{ name: 'echo', provider: 'echo' }], policies: { authorization: { rules } } }
    writeFileSync(file, JSON.stringify({ llm }))
    const { stdout, stderr, status } = tollgate('--validate-only', '-f', file)
    expect({ stdout, status }).toEqual({ stdout: 'Configuration is valid!\n', status: 0 })
    expect(stderr).toMatch(/^warning: rule compares request\.path: .* \(place: llm, rule: deny rule 1, /m)
    expect(stderr).toMatch(
      /^warning: expression reads jwt .* \(place: llm, path: authorization\.rules\[1\]\.deny\)/m,
    )
  })

  it.each([
    [['-f'], '--file'],
    [['-f', ''], 'no configuration file'],
    [['--fiel', 'x.yaml'], '--fiel'],
    [['serve', '-f', 'x.yaml'], 'unknown command "serve"'],
    [['schema', 'more'], 'unknown command'],
    [['-f', 'no/such/file.yaml'], 'no/such/file.yaml: there is no such file'],
    [['--validate-only', '-f', root], 'it is a directory'],
  ])('refuses %j with a reason', (args, reason) => {
    const run = tollgate(...args)
    expect(run).toMatchObject({ stdout: '', status: 1 })
    expect(run.stderr).toContain(reason)
    expect(run.stderr).not.toMatch(/^\s+at /m)
  })

  it('ends without an error when the reader of its output closes the pipe', () => {
    const command = `"${process.execPath}" "${join(root, 'gateway/bin/tollgate.mjs')}" schema | head -c 1`
    const run = spawnSync('bash', ['-o', 'pipefail', '-c', command], { encoding: 'utf8', timeout: 20_000 })
    expect({ stdout: run.stdout, stderr: run.stderr, status: run.status }).toEqual({
      stdout: '{',
      stderr: '',
      status: 0,
    })
  })
})
