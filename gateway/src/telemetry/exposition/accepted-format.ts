/** Formats of the metrics. */
export type MetricFormat =
  | { readonly kind: 'text' }
  | { readonly kind: 'protobuf' }
  | { readonly kind: 'openmetrics'; readonly version: '1.0.0' | '0.0.1' }

const text: MetricFormat = { kind: 'text' }

/** Longer headers and lists are not read, so that their time is bounded. */
const maxLength = 4_096
const maxRanges = 32

/**
 * Returns the format with the highest weight in an `accept` header (RFC 9110 section 12.5.1), the first of
 * equal ones. The text format is the default, also if nothing in the header is known.
 */
export function preferredFormat(accept: string): MetricFormat {
  if (accept.length > maxLength) return text
  let preferred = text
  let highest = 0
  for (const range of accept.toLowerCase().split(',', maxRanges)) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const values = new Map(parameters.map(readParameter))
    const format = formatOf(type, values)
    const weight = Number(values.get('q') ?? 1)
    if (format === undefined || !(weight > highest)) continue
    highest = weight
    preferred = format
  }
  return preferred
}

function readParameter(parameter: string): [name: string, value: string] {
  const equals = parameter.indexOf('=')
  if (equals === -1) return [parameter, '']
  return [parameter.slice(0, equals).trim(), parameter.slice(equals + 1).replaceAll(/[\s"]/g, '')]
}

function formatOf(type: string, parameters: ReadonlyMap<string, string>): MetricFormat | undefined {
  const version = parameters.get('version')
  switch (type) {
    case 'application/openmetrics-text':
      if (version === undefined || version === '1.0.0') return { kind: 'openmetrics', version: '1.0.0' }
      return version === '0.0.1' ? { kind: 'openmetrics', version } : undefined
    case 'application/vnd.google.protobuf': {
      const isFamily = parameters.get('proto') === 'io.prometheus.client.metricfamily'
      return isFamily && parameters.get('encoding') === 'delimited' ? { kind: 'protobuf' } : undefined
    }
    case 'text/plain':
      return version === undefined || version === '0.0.4' ? text : undefined
    case 'text/*':
    case '*/*':
      return text
    default:
      return undefined
  }
}
