import { globSync, readFileSync } from 'node:fs'

/** A library in the bundle, by the folder it was read from. */
export type BundledPackage = { folder: string; name: string; version: string; license: string }

/** The packages that the bundle was made of, sorted by folder. `inputs` are paths of source files. */
export function bundledPackages(inputs: readonly string[]): BundledPackage[] {
  const folders = new Set(inputs.flatMap((input) => packageFolder(input) ?? []))
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
    return { folder, name, version, license }
  })
}

/** The licence text of every package, as most licences demand of copies. */
export function licenseTexts(packages: readonly BundledPackage[]): string {
  return packages
    .map(({ folder, name, version, license }) => {
      const [file] = globSync(`${folder}/{LICENSE,LICENCE,license}*`)
      const text = file === undefined ? '' : `\n${readFileSync(file, 'utf8').trim()}\n`
      return `${name} ${version} (${license})\n${text}`
    })
    .join(`\n${'-'.repeat(80)}\n\n`)
}

/**
 * A software bill of materials in CycloneDX 1.6 JSON: the gateway and the libraries inside its bundle, each
 * with its package URL, licence and the SHA-512 that the lock file records. Contains no time, so that equal
 * builds are equal.
 */
export function billOfMaterials(packages: readonly BundledPackage[], version: string): object {
  const locked = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages
  const reference = packageUrl('tollgate', version)
  const components = packages.map((bundled) => component(bundled, locked[bundled.folder]?.integrity))
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': reference,
        name: 'tollgate',
        version,
        purl: reference,
        licenses: [{ license: { id: 'Apache-2.0' } }],
      },
    },
    components,
    dependencies: [
      { ref: reference, dependsOn: components.map((entry) => entry['bom-ref']) },
      ...components.map((entry) => ({ ref: entry['bom-ref'] })),
    ],
  }
}

function component({ name, version, license }: BundledPackage, integrity: unknown) {
  const digest = /^sha512-(.+)$/.exec(String(integrity))?.[1]
  if (digest === undefined) throw new Error(`package-lock.json has no SHA-512 of ${name} ${version}`)
  const purl = packageUrl(name, version)
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    scope: 'required',
    licenses: [{ expression: license }],
    hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
  }
}

/** Package URL specification: the at sign of an npm scope is encoded. */
function packageUrl(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

function packageFolder(input: string): string | undefined {
  return /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]
}
