/**
 * The boundary of `multipart/form-data` (RFC 7578 section 4.1), undefined for other media types, and a
 * problem for a boundary that parsers might read differently.
 */
export function readFormBoundary(
  contentType: string | string[] | undefined,
): { kind: 'boundary'; boundary: string } | { kind: 'invalid' } | undefined {
  if (typeof contentType !== 'string') return undefined
  const [type = '', ...parameters] = contentType.split(';')
  if (type.trim().toLowerCase() !== 'multipart/form-data') return undefined
  let boundary: string | undefined
  for (const parameter of parameters) {
    const [, name = '', quoted, token] = parameterSyntax.exec(parameter) ?? []
    if (name.toLowerCase() === 'charset' && /^utf-?8$/i.test(quoted ?? token ?? '')) continue
    if (name.toLowerCase() !== 'boundary' || boundary !== undefined) return { kind: 'invalid' }
    boundary = quoted ?? token
  }
  return boundary === undefined ? { kind: 'invalid' } : { kind: 'boundary', boundary }
}

/** Characters of RFC 2046 section 5.1.1 without those that need an interpretation: spaces and semicolons. */
const parameterSyntax = /^\s*([A-Za-z]+)=(?:"([\w'()+,./:=?-]{1,70})"|([\w'+./:?-]{1,70}))\s*$/
