/** Page of a gateway without a built console. */
export const missingPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Console not built · Tollgate</title>
<h1>The console is not built</h1>
<p>This gateway runs from a checkout without the files of its console. The gateway and its API work.</p>
<p>Build the console in the checkout, then reload this page:</p>
<pre>npm run ui</pre>
</html>
`
