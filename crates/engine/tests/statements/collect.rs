//! Reads the SQL out of Rust sources: the string literals that are statements or parts of them.

#![allow(clippy::wildcard_enum_match_arm, reason = "the enums of `syn` may grow")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use windlass_db::{Statement, UpdateReturning};

/// The words with which a statement begins.
const VERBS: [&str; 5] = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"];
/// Words that only SQL has, written like this.
const PARTS: [&str; 8] =
    ["SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM ", " FROM ", " WHERE ", " VALUES ", " SET "];
/// The methods of a connection that return the ids of new rows.
const INSERTS: [&str; 2] = ["insert_returning_ids", "insert_returning_ids_and_commit"];

/// What was found in some sources, each with its place.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) statements: Vec<(String, Statement)>,
    /// Texts with SQL in them that neither are statements nor belong to one that is found.
    pub(crate) strays: Vec<(String, String)>,
    /// Every text with SQL in it.
    pub(crate) texts: Vec<(String, String)>,
}

/// The SQL of all sources in a folder, without their tests.
pub(crate) fn collect(folder: &Path) -> Found {
    let mut found = Found::default();
    for path in sources(folder) {
        let source = std::fs::read_to_string(&path).unwrap();
        let file = syn::parse_file(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut inserts = Inserts::default();
        inserts.visit_file(&file);
        Reader { path: &path, inserts, found: &mut found }.visit_file(&file);
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            paths.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            paths.push(path);
        }
    }
    paths
}

fn is_statement(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| VERBS.contains(&word)) && has_sql(text)
}

fn has_sql(text: &str) -> bool {
    PARTS.iter().any(|part| text.contains(part))
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute
                .meta
                .require_list()
                .is_ok_and(|list| list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    })
}

/// The literals and constants that are given to the methods that return ids.
#[derive(Default)]
struct Inserts {
    names: Vec<String>,
    literals: Vec<String>,
}

impl<'ast> Visit<'ast> for Inserts {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if INSERTS.contains(&call.method.to_string().as_str()) {
            match call.args.first() {
                Some(syn::Expr::Path(path)) => {
                    self.names.extend(path.path.get_ident().map(ToString::to_string));
                }
                Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) => {
                    self.literals.push(text.value());
                }
                other => panic!("an insert is given what is no text: {:?}", other.map(Spanned::span)),
            }
        }
        visit::visit_expr_method_call(self, call);
    }
}

struct Reader<'r> {
    path: &'r Path,
    inserts: Inserts,
    found: &'r mut Found,
}

impl Reader<'_> {
    fn place(&self, span: proc_macro2::Span) -> String {
        format!("{}:{}", self.path.display(), span.start().line)
    }

    fn literal(&mut self, literal: &syn::LitStr, constant: Option<&syn::Ident>, is_piece: bool) {
        let (place, text) = (self.place(literal.span()), literal.value());
        if !has_sql(&text) {
            return;
        }
        self.found.texts.push((place.clone(), text.clone()));
        if is_piece || !is_statement(&text) {
            self.found.strays.push((place, text));
            return;
        }
        let is_insert = self.inserts.literals.contains(&text)
            || constant.is_some_and(|name| self.inserts.names.contains(&name.to_string()));
        let sql: &'static str = text.leak();
        let statement = if is_insert { Statement::InsertReturningIds(sql) } else { Statement::Plain(sql) };
        self.found.statements.push((place, statement));
    }

    /// The literals of a macro's call. `concat!` makes another text of them: they are pieces.
    fn tokens(&mut self, tokens: TokenStream, are_pieces: bool) {
        let mut before = [String::new(), String::new()];
        for token in tokens {
            let shown = token.to_string();
            match token {
                TokenTree::Group(group) => {
                    self.tokens(group.stream(), are_pieces || before == ["concat", "!"]);
                }
                TokenTree::Literal(literal) => {
                    if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                        self.literal(&text, None, are_pieces);
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
            before.rotate_left(1);
            before[1] = shown;
        }
    }

    fn update(&mut self, update: &syn::ExprStruct) {
        let fields: BTreeMap<String, &syn::Expr> = update
            .fields
            .iter()
            .filter_map(|field| match &field.member {
                syn::Member::Named(name) => Some((name.to_string(), &field.expr)),
                syn::Member::Unnamed(_) => None,
            })
            .collect();
        let pairs = |element: &syn::Expr| match element {
            syn::Expr::Tuple(pair) => (literal(&pair.elems[0]), literal(&pair.elems[1])),
            other => panic!("{}: no column with its value", self.place(other.span())),
        };
        let from = match fields["from"] {
            syn::Expr::Call(some) => Some(literal(&some.args[0])),
            _none => None,
        };
        let update_returning = UpdateReturning {
            table: literal(fields["table"]),
            set: elements(fields["set"]).into_iter().map(pairs).collect::<Vec<_>>().leak(),
            from,
            condition: literal(fields["condition"]),
            returning: elements(fields["returning"]).into_iter().map(literal).collect::<Vec<_>>().leak(),
        };
        let statement = Statement::UpdateReturning(Box::leak(Box::new(update_returning)));
        let place = self.place(update.span());
        self.found.texts.push((place.clone(), statement.to_string()));
        self.found.statements.push((place, statement));
    }
}

fn literal(expression: &syn::Expr) -> &'static str {
    match expression {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => text.value().leak(),
        other => panic!("line {}: no text", other.span().start().line),
    }
}

fn elements(expression: &syn::Expr) -> Vec<&syn::Expr> {
    match expression {
        syn::Expr::Reference(reference) => match &*reference.expr {
            syn::Expr::Array(array) => array.elems.iter().collect(),
            other => panic!("line {}: no list", other.span().start().line),
        },
        other => panic!("line {}: no list", other.span().start().line),
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_of_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_of_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    // Documentation and other attributes are no SQL.
    fn visit_attribute(&mut self, _attribute: &'ast syn::Attribute) {}

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        match &*item.expr {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                self.literal(text, Some(&item.ident), false);
            }
            _other => visit::visit_item_const(self, item),
        }
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        let name = expression.path.segments.last().map(|segment| segment.ident.to_string());
        match name.as_deref() {
            Some("UpdateReturning") => self.update(expression),
            // A part of statements: translated with each of them.
            Some("Fragment") => {}
            Some(_) | None => visit::visit_expr_struct(self, expression),
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.literal(literal, None, false);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone(), call.path.is_ident("concat"));
    }
}
