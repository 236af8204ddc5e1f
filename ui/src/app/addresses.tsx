import { type ReactNode, useMemo } from 'react'
import { type BaseLocationHook, type Parser, Router, useRouter } from 'wouter'
import { useBrowserLocation, useSearch } from 'wouter/use-browser-location'

// wouter applies `decodeURI` to addresses, which leaves `%2F` and loses `%25`: a record named `openai/gpt-5` would have
// another name on its page. Here an escaped percent sign preserves the address, and each parameter is decoded once.

/** Path of the address as it is in the address bar. */
export const useRawLocation: BaseLocationHook = (options) => {
  const [path, navigate] = useBrowserLocation(options)
  return [escapePercent(path), navigate]
}

/** Query of the address as it is in the address bar. */
export function useRawSearch(): string {
  return escapePercent(useSearch())
}

function escapePercent(text: string): string {
  return text.replaceAll('%', '%25')
}

/** Decodes the parameters of the routes inside. */
export function DecodedParameters({ children }: { children: ReactNode }) {
  const { parser } = useRouter()
  const decoding = useMemo(() => decodingParser(parser), [parser])
  return <Router parser={decoding}>{children}</Router>
}

/** Wraps a parser of route patterns: parameters of its matches are decoded. */
export function decodingParser(parse: Parser): Parser {
  return (route, loose) => {
    const parsed = parse(route, loose)
    return { ...parsed, pattern: { exec: (text) => withDecodedGroups(parsed.pattern.exec(text)) } }
  }
}

function withDecodedGroups(match: RegExpExecArray | null): RegExpExecArray | null {
  for (let group = 1; match !== null && group < match.length; group += 1) {
    const value = match[group]
    if (value !== undefined) match[group] = decoded(value)
  }
  return match
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // Typed by hand: the page reports that there is no such record.
    return text
  }
}
