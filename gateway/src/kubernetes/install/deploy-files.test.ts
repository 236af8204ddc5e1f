import { execFileSync, spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parseYaml } from '../../config/yaml/yaml.ts'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import { eventKind, leaseKind, tokenReviewKind } from '../client/requests/other-kinds.ts'
import { deployedKindNames, deployedKinds } from '../deployer/deployed-kinds.ts'
import { type ApiKind, readKindNames, readKinds } from '../objects/kinds.ts'
import { type AccessRule, clusterRules, namespacedRules, ownRules } from './access-rules.ts'
import { deployFiles } from './deploy-files.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const chart = join(root, 'deploy/helm/tollgate')
const read = (path: string) => readFileSync(path, 'utf8').replaceAll('\r\n', '\n')
const { version } = JSON.parse(read(join(root, 'gateway/package.json')))

function documentsOf(text: string): JsonObject[] {
  return text.split(/^---$/m).flatMap((part) => {
    const value = parseYaml(part)
    return isJsonObject(value) ? [value] : []
  })
}

function permits(
  rules: readonly AccessRule[],
  { group, plural }: ApiKind,
  verbs: readonly string[],
  sub = '',
) {
  const allowed = rules
    .filter(({ apiGroups, resources }) => apiGroups.includes(group) && resources.includes(plural + sub))
    .flatMap((rule) => rule.verbs)
  return verbs.every((verb) => allowed.includes(verb))
}

describe('rules of access', () => {
  it.each(readKindNames)('permit to read %s', (name) => {
    const kind = readKinds[name]
    const rules = kind.isNamespaced ? namespacedRules() : clusterRules()
    expect(permits(rules, kind, ['get', 'list', 'watch'])).toBe(true)
  })

  it.each(deployedKindNames)('permit to deploy %s', (name) => {
    const verbs = ['get', 'list', 'watch', 'create', 'patch', 'delete']
    expect(permits(namespacedRules(), deployedKinds[name], verbs)).toBe(true)
  })

  it('permit the other calls of the controller', () => {
    expect(permits(clusterRules(), readKinds.GatewayClass, ['update'], '/status')).toBe(true)
    expect(permits(namespacedRules(), readKinds.GatewayPolicy, ['update'], '/status')).toBe(true)
    expect(permits(clusterRules(), tokenReviewKind, ['create'])).toBe(true)
    expect(permits(namespacedRules(), eventKind, ['create'])).toBe(true)
    expect(permits(ownRules(), leaseKind, ['get', 'create', 'update'])).toBe(true)
  })

  it('contain no wildcard, no Pods, and no write of routes and Gateways', () => {
    const rules = [...clusterRules(), ...namespacedRules(), ...ownRules()]
    const names = rules.flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs])
    expect(
      names.filter((name) => ['*', 'pods', 'nodes', 'escalate', 'bind', 'impersonate'].includes(name)),
    ).toEqual([])
    const writing = rules.filter(({ verbs }) =>
      verbs.some((verb) => !['get', 'list', 'watch'].includes(verb)),
    )
    const own = writing.filter(({ apiGroups }) => apiGroups.some((group) => /gateway|tollgate/.test(group)))
    expect(own.flatMap(({ resources }) => resources).filter((name) => !name.endsWith('/status'))).toEqual([])
  })
})

describe('manifests', () => {
  const files = globSync('*.yaml', { cwd: join(root, 'deploy/manifests') }).sort()
  const objects = files.flatMap((file) => documentsOf(read(join(root, 'deploy/manifests', file))))

  it('are all generated', () => {
    expect(files.map((file) => `deploy/manifests/${file}`)).toEqual(
      Object.keys(deployFiles(version)).filter((path) => path.startsWith('deploy/manifests/')),
    )
  })

  it('are objects with version, kind and name', () => {
    expect(objects.length).toBeGreaterThan(10)
    for (const { apiVersion, kind, metadata } of objects) {
      expect([typeof apiVersion, typeof kind]).toEqual(['string', 'string'])
      expect(isJsonObject(metadata) && typeof metadata['name']).toBe('string')
    }
  })

  it('contain their namespace before the objects in it', () => {
    expect(objects[0]?.['kind']).toBe('Namespace')
  })
})

describe('the Helm chart', () => {
  const templates = globSync('templates/*', { cwd: chart }).map((file) => read(join(chart, file)))
  const values = documentsOf(read(join(chart, 'values.yaml')))[0] ?? {}
  const used = new Set(
    templates.flatMap((text) => [...text.matchAll(/\$?\.Values\.([\w.]+)/g)].map(([, path = '']) => path)),
  )

  it('has a default for every value of its templates', () => {
    const valueAt = (path: string) =>
      path.split('.').reduce<unknown>((here, key) => (isJsonObject(here) ? here[key] : undefined), values)
    expect([...used].filter((path) => valueAt(path) === undefined)).toEqual([])
  })

  it('uses every value', () => {
    const paths = Object.entries(values).flatMap(([key, value]) =>
      isJsonObject(value) && Object.keys(value).length > 0
        ? Object.keys(value).map((inner) => `${key}.${inner}`)
        : [key],
    )
    expect(paths.filter((path) => !used.has(path))).toEqual([])
  })

  it('contains the files that its templates read', () => {
    const names = templates.flatMap((text) =>
      [...text.matchAll(/Files\.Get "([^"]+)"/g)].map(([, name]) => name),
    )
    expect(names.length).toBe(3)
    for (const name of names)
      expect(Object.keys(deployFiles(version))).toContain(`deploy/helm/tollgate/${name}`)
  })

  const hasHelm = spawnSync('helm', ['version']).status === 0

  it.skipIf(!hasHelm)('renders the manifests with its defaults', () => {
    const rendered = (...args: string[]) =>
      documentsOf(
        execFileSync(
          'helm',
          ['template', 'tollgate', chart, '-n', 'tollgate-system', '--kube-version', '1.36.0', ...args],
          {
            encoding: 'utf8',
          },
        ),
      )
    const key = (object: JsonObject) => `${object['kind']}/${JSON.stringify(object['metadata'])}`
    const byKey = (objects: JsonObject[]) => objects.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
    const plain = globSync('deploy/manifests/*.yaml', { cwd: root }).flatMap((file) =>
      documentsOf(read(join(root, file))),
    )
    expect(byKey(rendered())).toEqual(byKey(plain.filter(({ kind }) => kind !== 'Namespace')))
    const limited = rendered('--set', 'watchNamespaces={a,b}').map(({ kind }) => kind)
    expect(limited.filter((kind) => kind === 'ClusterRoleBinding')).toHaveLength(1)
    expect(limited.filter((kind) => kind === 'RoleBinding')).toHaveLength(3)
  })
})

describe('the Containerfile', () => {
  const text = read(join(root, 'deploy/Containerfile'))

  it('runs without root and without a shell', () => {
    const last = text.slice(text.lastIndexOf('\nFROM '))
    expect(last).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m)
    expect(last).toMatch(/^ENTRYPOINT \["/m)
    expect(last).not.toMatch(/^(RUN|CMD|ENTRYPOINT [^[])/m)
  })

  it('starts a file of the npm package', () => {
    const { files, bin } = JSON.parse(read(join(root, 'gateway/package.json')))
    expect(files).toContain('bin')
    expect(text).toContain(`/opt/tollgate/${bin.tollgate}"]`)
  })

  it('has the version of the package in its example', () => {
    expect(text).toContain(`-t tollgate:${version} dist`)
  })
})
