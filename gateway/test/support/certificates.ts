import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate with its key, both PEM. */
export type Certificate = { readonly cert: string; readonly key: string }

/** Issues certificates; `cert` is the authority's certificate, for trust stores. */
export type Authority = Certificate & {
  /**
   * A certificate for DNS names, IP addresses or SPIFFE ids, the first of them its subject; good for servers
   * and clients.
   */
  issue(...names: string[]): Certificate
}

/** Creates an authority with new keys. Needs the `openssl` command. */
export function createAuthority(name = 'Tollgate tests'): Authority {
  const own = generate([`-subj`, `/CN=${name}`, '-addext', 'keyUsage=critical,keyCertSign,cRLSign'])
  return {
    ...own,
    issue(...names) {
      const alternatives = names.map(alternativeName).join(',')
      return generate(
        [
          '-subj',
          `/CN=${names[0]?.replaceAll('/', '\\/')}`,
          '-addext',
          `subjectAltName=${alternatives}`,
          '-addext',
          'basicConstraints=critical,CA:false',
        ],
        own,
      )
    },
  }
}

function alternativeName(name: string): string {
  if (name.includes('://')) return `URI:${name}`
  return /^[\d.]+$|:/.test(name) ? `IP:${name}` : `DNS:${name}`
}

function generate(options: string[], issuer?: Certificate): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  try {
    const certFile = join(folder, 'cert.pem')
    const keyFile = join(folder, 'key.pem')
    const signed = issuer ? signedBy(issuer, folder) : []
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc', '-days', '2']
        .concat(['-keyout', keyFile, '-out', certFile])
        .concat(signed, options),
      { stdio: 'pipe' },
    )
    return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function signedBy({ cert, key }: Certificate, folder: string): string[] {
  const certFile = join(folder, 'issuer.pem')
  const keyFile = join(folder, 'issuer-key.pem')
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  return ['-CA', certFile, '-CAkey', keyFile]
}
